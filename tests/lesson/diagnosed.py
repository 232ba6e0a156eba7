"""Wrong answers to an exercise, made from the lesson's own quantities."""

from core.lesson.exercise import draw
from core.lesson.lesson import Lesson

_SEEDS = 60


def is_diagnosed(lesson: Lesson, exercise: int, name: str, says: str, digits: str = ".6g") -> None:
    """Check that with some seed the quantity ``name``, given as the answer, is wrong and named so."""
    for seed in range(_SEEDS):
        instance = draw(lesson, lesson.exercises[exercise], seed)
        verdict = instance.check(f"{lesson.quantities[name](instance.case).value:{digits}}")
        if says in verdict.sentence:
            assert not verdict.correct
            return
    raise AssertionError(f"no seed of {_SEEDS} diagnoses {name}")


def is_wrong_by_a_factor(lesson: Lesson, exercise: str, factor: float, says: str, seed: int) -> None:
    """Check that the right answer times ``factor`` is wrong and named so."""
    instance = draw(lesson, lesson.exercise(exercise), seed)
    verdict = instance.check(f"{instance.answer.value * factor:.6g}")
    assert not verdict.correct
    assert says in verdict.sentence
