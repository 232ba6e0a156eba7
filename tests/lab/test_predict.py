"""Laws of the prediction: what must hold whatever the machine."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.kv_cache import bytes_per_token
from core.analytic.machine import Machine
from core.analytic.operators import operators
from core.analytic.params import stored_bytes
from core.catalog.models import model
from core.errors import FormatError, RequestError
from core.lab.checked_json import Reader
from core.lab.predict import Prediction, predict
from tests.lab.examples import PROMPT_TOKENS, calibration, request

SMOL = model("smollm2-135m")
MACHINE = calibration().machine()


def faster_memory(factor: float) -> Machine:
    rates = {key: replace(rate, bytes_per_s=rate.bytes_per_s * factor) for key, rate in MACHINE.rates.items()}
    return replace(MACHINE, rates=rates)


@given(
    factor=st.floats(1, 100),
    prompt_tokens=st.integers(1, 1000),
    weights=st.sampled_from(["fp32", "bf16", "int8", "int8-dynamic", "int4"]),
)
def test_more_bandwidth_is_never_slower(factor: float, prompt_tokens: int, weights: str) -> None:
    asked = request(weights=weights)
    now = predict(asked, prompt_tokens, SMOL, MACHINE)
    then = predict(asked, prompt_tokens, SMOL, faster_memory(factor))
    assert all(faster <= slower for faster, slower in zip(then.step_s, now.step_s, strict=True))


@given(prompt_tokens=st.integers(1, 1000))
def test_without_a_cache_later_steps_take_longer_and_the_first_is_the_same(prompt_tokens: int) -> None:
    with_cache = predict(request(), prompt_tokens, SMOL, MACHINE)
    without = predict(request(cache="none"), prompt_tokens, SMOL, MACHINE)
    assert without.ttft_s == with_cache.ttft_s
    assert list(without.step_s) == sorted(without.step_s)
    assert without.step_s[-1] > with_cache.step_s[-1]
    assert without.memory["kv_bytes"] == 0


def test_a_longer_context_costs_what_its_cache_takes_to_read() -> None:
    short, long = (predict(request(), tokens, SMOL, MACHINE) for tokens in (100, 1100))
    assert short.decode is not None and long.decode is not None
    assert long.decode.kv_bytes - short.decode.kv_bytes == 1000 * float(bytes_per_token(SMOL, "bf16"))
    assert long.tpot_s is not None and short.tpot_s is not None
    assert long.tpot_s > short.tpot_s


def test_the_steps_the_operators_and_the_headline_are_one_sum() -> None:
    prediction = predict(request(), PROMPT_TOKENS, SMOL, MACHINE)
    assert prediction.decode is not None
    assert prediction.prefill.seconds == pytest.approx(prediction.ttft_s)
    assert prediction.decode.seconds == pytest.approx(prediction.tpot_s)
    assert prediction.end_to_end_s == pytest.approx(prediction.ttft_s + 7 * (prediction.tpot_s or 0))
    assert list(prediction.decode.operators_s)[:3] == ["embedding", "attention_norm", "qkv"]


def test_utilisation_is_bytes_over_time_over_bandwidth() -> None:
    prediction = predict(request(), PROMPT_TOKENS, SMOL, MACHINE)
    assert prediction.decode is not None and prediction.tpot_s is not None
    moved = prediction.decode.weight_bytes + prediction.decode.kv_bytes
    assert prediction.mbu == pytest.approx(moved / prediction.tpot_s / 30e9)


def test_memory_is_what_is_stored() -> None:
    prediction = predict(request(), PROMPT_TOKENS, SMOL, MACHINE)
    last_context = PROMPT_TOKENS + 7
    assert prediction.memory["weights_bytes"] == stored_bytes(SMOL, "int4")
    assert prediction.memory["kv_bytes"] == last_context * float(bytes_per_token(SMOL, "bf16"))


def test_a_long_prompt_is_read_in_pieces() -> None:
    prediction = predict(request(), 5000, SMOL, MACHINE)
    assert len(prediction.prefill_step_s) == 3
    assert prediction.prefill.seconds == pytest.approx(prediction.ttft_s)
    assert len(prediction.decode_step_s) == 7
    whole = operators(SMOL, batch=1, new_tokens=5000, context=5000, weights="int4", kv="bf16", logit_rows=3)
    assert prediction.prefill.flops == pytest.approx(float(whole.total("flops")))


def test_one_token_has_no_time_per_later_token() -> None:
    prediction = predict(request(max_tokens=1), PROMPT_TOKENS, SMOL, MACHINE)
    assert (prediction.tpot_s, prediction.decode, prediction.mbu) == (None, None, None)
    assert prediction.end_to_end_s == prediction.ttft_s


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (0, "The prompt must have a token or more; this one has none."),
        (8190, "has a context of 8,192 tokens; 8,190 of the prompt and 8 new ones are 8,198. Shorten"),
    ],
)
def test_a_prompt_that_does_not_fit_is_refused(tokens: int, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        predict(request(), tokens, SMOL, MACHINE)


def test_a_format_without_a_rate_is_refused() -> None:
    with pytest.raises(FormatError, match="fp16"):
        predict(request(weights="fp16"), PROMPT_TOKENS, SMOL, MACHINE)


@pytest.mark.parametrize("max_tokens", [1, 8])
def test_a_prediction_survives_json(max_tokens: int) -> None:
    prediction = predict(request(max_tokens=max_tokens), PROMPT_TOKENS, SMOL, MACHINE)
    assert Prediction.from_reader(Reader(prediction.to_json(), "A prediction")) == prediction
