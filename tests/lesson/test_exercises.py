"""Exercises draw the same numbers from the same seed, and tell right from wrong and why."""

import doctest
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import AnswerError
from core.lesson import amount, answer, exercise, filled
from core.lesson.answer import read_number
from core.lesson.diagnosis import DIAGNOSES
from core.lesson.exercise import SEEDS, Instance, draw, read_seed
from core.lesson.lesson import Lesson
from core.lesson.lesson_file import lessons
from core.lesson.lesson_records import Exercise

ALL = [(lesson, item) for lesson in lessons().values() for item in lesson.exercises]
seeds = st.integers(*SEEDS)


def made(lesson: str = "kv_cache", seed: int = 0) -> Instance:
    found = lessons()[lesson]
    return draw(found, found.exercises[0], seed)


def typed(instance: Instance, factor: float) -> str:
    return f"{instance.answer.value * factor:.6g}"


@pytest.mark.parametrize("module", [amount, answer, exercise, filled])
def test_examples_hold(module: Any) -> None:
    found = doctest.testmod(module)
    assert (found.attempted > 0, found.failed) == (True, 0)


@pytest.mark.parametrize(("lesson", "item"), ALL)
@given(seed=seeds)
def test_one_seed_draws_one_question(lesson: Lesson, item: Exercise, seed: int) -> None:
    first = draw(lesson, item, seed)
    assert first.question == draw(lesson, item, seed).question
    assert "{" not in first.question + first.solution
    assert first.answer.unit == item.unit
    for name, value in first.values.items():
        assert value in item.parameters[name]


def test_another_process_draws_the_same() -> None:
    code = (
        "from core.lesson.exercise import draw; from core.lesson.lesson_file import lessons;"
        "lesson = lessons()['kv_cache']; print(draw(lesson, lesson.exercises[0], 7).values)"
    )
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(made(seed=7).values)


def test_seeds_differ() -> None:
    assert len({made(seed=seed).question for seed in range(20)}) > 10


@pytest.mark.parametrize(("lesson", "item"), ALL)
@given(seed=seeds, share=st.floats(-0.99, 0.99))
def test_within_the_tolerance_is_right_and_has_no_diagnosis(
    lesson: Lesson, item: Exercise, seed: int, share: float
) -> None:
    instance = draw(lesson, item, seed)
    verdict = instance.check(repr(instance.answer.value * (1 + share * item.tolerance)))
    assert verdict.correct
    assert verdict.sentence == f"Right: {instance.answer.text}."


@pytest.mark.parametrize(("lesson", "item"), ALL)
@given(seed=seeds, factor=st.floats(1e-4, 1e4))
def test_outside_the_tolerance_is_wrong_and_says_something(
    lesson: Lesson, item: Exercise, seed: int, factor: float
) -> None:
    instance = draw(lesson, item, seed)
    verdict = instance.check(repr(instance.answer.value * factor))
    assert verdict.correct == (abs(factor - 1) <= item.tolerance)
    assert verdict.sentence.endswith(".")
    # A wrong answer must not give the right one away.
    assert verdict.correct or instance.answer.text not in verdict.sentence


@pytest.mark.parametrize(
    ("factor", "reason"),
    [
        (1 / 2, "a token leaves a key and a value"),
        (2, "the 2 for keys and values belongs in once"),
        (8, "Only 8 KV heads of 128 are kept"),
        (1 / 8, "divide bits by 8 once only"),
        (1e9 / 2**30, "That is the number of GiB"),
        (1000, "check milli and kilo"),
        (1 / 80, "That is one layer. This model has 80 of them."),
        (1 / 4096, "That is for one token. The question asks for all 4,096 of them."),
        (1 / 3, "That is for one sequence. There are 3 of them."),
        (3.3, "Too large. Check each factor and its unit, then try again."),
        (1 / 7.3e3, "Too small, by more than a hundred times."),
    ],
)
def test_wrong_answers_to_the_cache_are_diagnosed(factor: float, reason: str) -> None:
    lesson = lessons()["kv_cache"]
    item = lesson.exercises[0]
    wanted = {"model": "llama-2-70b", "context": 4096, "batch": 3, "kv": "bf16"}
    instance = next(i for i in (draw(lesson, item, seed) for seed in range(2000)) if i.values == wanted)
    assert instance.answer.value == pytest.approx(2 * 80 * 8 * 128 * 2 * 4096 * 3 / 1e9)
    verdict = instance.check(typed(instance, factor))
    assert not verdict.correct
    assert reason in verdict.sentence


@pytest.mark.parametrize(
    ("factor", "reason"),
    [
        (1 / 2, "vendors print it with 2:4 sparsity"),
        (1 / 1000, "check milli and kilo. The answer is in ms."),
        (0.6, "That is the time at the whole peak. The prefill reaches 60 % of it"),
    ],
)
def test_wrong_answers_to_the_prefill_are_diagnosed(factor: float, reason: str) -> None:
    lesson = lessons()["prefill_and_decode"]
    draws = (draw(lesson, lesson.exercises[0], seed) for seed in range(200))
    instance = next(found for found in draws if found.values["mfu"] == 0.6)
    verdict = instance.check(typed(instance, factor))
    assert not verdict.correct
    assert reason in verdict.sentence


def test_seconds_for_milliseconds_are_right_when_the_unit_is_said() -> None:
    instance = made("prefill_and_decode")
    assert instance.check(f"{instance.answer.value / 1000:.6g} s").correct
    assert not instance.check(f"{instance.answer.value / 1000:.6g}").correct


def test_gibibytes_are_right_when_the_unit_is_said() -> None:
    instance = made()
    assert instance.check(f"{instance.answer.in_unit('GiB').value:.6g} GiB").correct


@pytest.mark.parametrize(("lesson", "item"), ALL)
def test_a_slip_that_is_no_slip_here_is_never_named(lesson: Lesson, item: Exercise) -> None:
    """With as many KV heads as query heads, counting query heads is right, and so nothing is said."""
    for seed in range(60):
        instance = draw(lesson, item, seed)
        for slip in instance._slips():
            assert not instance.check(repr(instance.answer.value * slip.factor)).correct


def test_every_diagnosis_yields_reasons() -> None:
    instance = made()
    for name, diagnosis in DIAGNOSES.items():
        slips = list(diagnosis(instance.case, instance.answer))
        assert slips, name
        assert all(slip.says.endswith(".") and slip.factor > 0 for slip in slips)


# --- Numbers as people type them ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.07", 1.07), ("1,07", 1.07), (" 1.07 GB ", 1.07), ("1.07GB", 1.07), ("1.07 gb", 1.07),
        ("1e9", 1e9), ("1.5E-3", 1.5e-3), ("2 x 10^9", 2e9), ("2*10**3", 2000), ("10^6", 1e6),
        ("1,024", 1024),
        ("1,234,567", 1234567), ("1 234 567", 1234567), ("1.234.567", 1234567), ("1,234.5", 1234.5),
        ("1.234,5", 1234.5), ("0,125", 0.125), ("0.125", 0.125), (".5", 0.5), ("1'000", 1000),
        ("1_000", 1000),
        ("~1.07", 1.07), ("= 1.07", 1.07), ("≈ 2 GB", 2), ("1 GiB", 1.073741824),
        ("1073741824 B", 1.073741824),
        ("1,024 MiB", 1.073741824), ("3.", 3.0), ("1.07 GB.", 1.07), ("1.234", 1.234),
    ],
)  # fmt: skip
def test_numbers_are_read_as_they_are_meant(text: str, value: float) -> None:
    assert read_number(text, "GB").value == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "this one is empty"),
        ("   ", "this one is empty"),
        ("a lot", "'a lot' is none"),
        ("<script>", "'<script>' is none"),
        ("nan", "is none"),
        ("inf", "is none"),
        ("1e999", "above zero and finite"),
        ("9e308", "above zero and finite"),
        ("1e400", "above zero and finite"),
        ("-3", "above zero and finite; got '-3'"),
        ("0", "above zero"),
        ("1,2,3", "where the decimals begin"),
        ("1.2.3", "where the decimals begin"),
        ("1,2.3,4", "where the decimals begin"),
        ("1 2", "where the decimals begin"),
        ("1 GB 2", "is another thing"),
        ("5 Gb", "'Gb' stands for bits, 8 to a byte"),
        ("5 bits", "stands for bits"),
        ("5 ms", "The answer must be in GB, and 'ms' is another thing"),
        ("5 apples", "'apples' is another thing"),
        ("9" * 61, "up to 60 characters; this one has 61"),
        ("1/2", "is another thing"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(AnswerError, match=sentence) as caught:
        read_number(text, "GB")
    assert str(caught.value).endswith(".")


@given(st.text(max_size=80))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        assert read_number(text, "ms").value > 0
    except AnswerError as problem:
        str(problem).encode("utf-8", "surrogatepass")


@given(st.floats(1e-12, 1e12))
def test_every_number_is_read_back(value: float) -> None:
    assert read_number(repr(value), "").value == pytest.approx(value)
    assert read_number(f"{value:.3e}", "").value == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "seed", "note"),
    [
        (None, 0, ""),
        ("42", 42, ""),
        ("abc", 0, "A seed must be a whole number; the link says 'abc', so 0 is used."),
        ("-1", 0, "A seed must be a whole number"),
        ("²", 0, "A seed must be a whole number"),
        ("12345678", 999_999, "A seed must be up to 999,999"),
        ("9" * 5000, 0, "A seed must be a whole number"),
    ],
)
def test_seeds_come_out_of_links(text: str | None, seed: int, note: str) -> None:
    found, said = read_seed(text)
    assert found == seed
    assert said.startswith(note)
    assert bool(said) == bool(note)
