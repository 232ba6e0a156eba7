"""Records the lessons' runs on this machine, for pages where nobody has measured yet.

``PYTHONPATH=. .venv/bin/python docs/record_lessons.py [LESSON ...]`` runs what the lessons ask for in the
lab's own worker, as a page would, and writes a record of each run to ``assets/records/``. Do it on a
quiet machine: a run that was disturbed is done again, and a record that stays noisy says so. Records that
are there are replaced. A lesson that serves a trace has its experiment, as its page first shows it, recorded
under ``assets/records/experiments/``.
"""

import argparse
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

from core.lab.bench import LIMITS, finish, run_until_quiet
from core.lab.client import LabClient
from core.lab.record import dumps
from core.lesson.lesson import Lesson
from core.lesson.lesson_file import lessons
from core.lesson.serving_trial import KIND, experiment_of

FOLDER = Path(__file__).parents[1] / "assets" / "records"
OWNER = "recorder"
#: Shared machines have noisy seconds: a run that was disturbed is done again, so often at most.
TRIES = 6


def record(lab: LabClient, lesson: Lesson) -> None:
    """Make every run of a lesson once and keep its record."""
    FOLDER.mkdir(exist_ok=True)
    for run in lesson.measurement.runs:
        found = run_until_quiet(lab, run.request, OWNER, TRIES)
        path = FOLDER / f"{lesson.id}-{re.sub('[^a-z0-9]+', '-', run.name.lower())}.json"
        path.write_text(dumps(found), encoding="utf-8")
        noise = "noisy" if found.noisy else "quiet"
        sys.stdout.write(f"{path.name}: {found.output_tokens} tokens, {noise}\n")


def record_experiment(lab: LabClient, lesson: Lesson) -> None:
    """Serve a lesson's trace with the page's first settings, and keep what came out."""
    folder = FOLDER / "experiments"
    folder.mkdir(parents=True, exist_ok=True)
    asked = experiment_of(lesson, replace(lesson.base_case, settings=lesson.defaults))
    for _ in range(TRIES):
        result = finish(lab, lab.submit_experiment(asked.kind, asked.payload, OWNER)).result or {}
        if not result["noisy"]:
            break
    path = folder / f"{lesson.id}.json"
    kept = {"kind": asked.kind, "payload": asked.payload, "result": result}
    path.write_text(json.dumps(kept, allow_nan=False), encoding="utf-8")
    sys.stdout.write(f"{path.name}: {'noisy' if result['noisy'] else 'quiet'}\n")


def main() -> None:
    """Record the lessons that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("lessons", nargs="*", default=list(lessons()), help="ids of lessons")
    lab = LabClient(LIMITS)
    try:
        for name in parser.parse_args().lessons:
            record(lab, lessons()[name])
            if lessons()[name].measurement.experiment == KIND:
                record_experiment(lab, lessons()[name])
    finally:
        lab.close()


if __name__ == "__main__":
    main()
