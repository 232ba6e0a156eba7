"""Every program that a page shows runs alone and prints the number it stands beside."""

import contextlib
import io
import re
from dataclasses import replace

import pytest

from core.lab.predict import predict
from core.lab.rehearsal import Rehearsal
from core.lab.request import RunRequest
from core.ui.lab import models
from core.ui.lab.arithmetic import Case, numbers_of, worked_number
from core.ui.worked_number import WorkedNumber
from tests.lab.examples import calibration


def case(prompt_tokens: int = 12, **changes: object) -> Case:
    request = RunRequest(**changes)  # type: ignore[arg-type]
    model, machine = models.spec(request.model), calibration().machine()
    return Case(request, model, machine, predict(request, prompt_tokens, model, machine))


def rehearsed(seen: Rehearsal) -> Case:
    one = case()
    found = predict(one.request, one.prediction.prompt_tokens, one.model, one.machine, seen)
    return replace(one, prediction=found, rehearsal=seen)


def numbers(one: Case) -> dict[str, WorkedNumber]:
    return {name: worked_number(one, name) for name in numbers_of(one)}


def run(program: str) -> dict[str, float]:
    values: dict[str, float] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(program, {}, values)  # noqa: S102 - what the page tells its visitors to run
    assert printed.getvalue().strip()
    return values


CASES = {
    "cached": case(),
    "uncached": case(cache="none", max_tokens=16),
    "long prompt": case(prompt_tokens=5000, max_tokens=8),
    "another shape": case(model="shape:qwen3-0.6b", weights="bf16"),
    "rehearsed": rehearsed(Rehearsal(1.44, 0.64)),
}


def test_a_recorded_run_names_the_pace_it_was_predicted_at() -> None:
    plain, paced = (numbers(replace(case(), pace=pace)) for pace in ("", "the pace before it"))

    def origins(found: dict[str, WorkedNumber]) -> str:
        return " ".join(item.source for name in ("TPOT", "MBU") for item in found[name].inputs)

    assert "at the pace before it" not in origins(plain)
    assert origins(paced).count("UTC, at the pace before it") == origins(plain).count("UTC") - 1
    assert "the better of the checks" in origins(paced), "the bandwidth of MBU was measured beside the run"


@pytest.mark.parametrize("name", CASES)
def test_ttft_is_the_predictions(name: str) -> None:
    one = CASES[name]
    assert run(numbers(one)["TTFT"].python)["pass_s"] == pytest.approx(one.prediction.ttft_s, rel=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_the_middle_step_is_close_to_tpot(name: str) -> None:
    one = CASES[name]
    assert run(numbers(one)["TPOT"].python)["pass_s"] == pytest.approx(one.prediction.tpot_s, rel=0.02)


@pytest.mark.parametrize("name", CASES)
def test_the_rates_and_the_memory_are_the_predictions(name: str) -> None:
    one, prediction = CASES[name], CASES[name].prediction
    assert run(numbers(one)["tokens/s"].python)["tokens_per_s"] == pytest.approx(prediction.tokens_per_s)
    assert run(numbers(one)["MBU"].python)["mbu"] == pytest.approx(prediction.mbu)
    assert run(numbers(one)["memory"].python)["memory_bytes"] == pytest.approx(prediction.total_memory_bytes)


def test_one_token_has_no_time_per_further_token() -> None:
    assert list(numbers(case(max_tokens=1))) == ["TTFT", "memory"]


@pytest.mark.parametrize("number", numbers(CASES["cached"]).values(), ids=lambda number: number.name)
def test_every_input_is_in_the_formula_and_has_a_source(number: WorkedNumber) -> None:
    for item in number.inputs:
        assert item.symbol in number.formula
        assert item.meaning
        assert item.source


def test_the_substituted_line_shows_the_result() -> None:
    terms = numbers(CASES["cached"])["memory"]
    assert re.fullmatch(r"[\d.]+ MiB \+ [\d.]+ MiB \+ [\d.]+ [KM]iB", terms.substituted)


def test_a_machines_name_cannot_leave_its_comment() -> None:
    program = numbers(CASES["cached"])["TTFT"].python
    assert all(line.startswith("#") for line in program.splitlines()[:3])
