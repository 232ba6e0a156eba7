"""Every kind of experiment, and the function that does it.

Each lives in a module of its own: it reads its typed request from the payload, takes the engines it
needs from the shelf, reports, looks between steps whether it should stop, and returns its record as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from core.lab.worker.engines import EngineShelf
from core.lab.worker.loop import JobContext
from core.lab.worker.quality_job import quality
from core.lab.worker.serve_job import serve_trace
from core.lab.worker.speculate_job import speculate
from core.lab.worker.split_job import split

Experimenter = Callable[[JobContext, dict[str, Any], EngineShelf], dict[str, Any]]

#: Kind (``core.lab.experiment.KINDS``) -> what does it.
EXPERIMENTS: Final[Mapping[str, Experimenter]] = {
    "serve-trace": serve_trace,
    "speculate": speculate,
    "quality": quality,
    "split": split,
}
