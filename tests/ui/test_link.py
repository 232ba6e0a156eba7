"""A link restores every setting but the prompt, and says what it had to repair."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import RequestError
from core.lab.request import RunRequest
from core.ui.lab import models
from core.ui.lab.link import KEYS, LIMITS, PREFIX, decode, encode

MODELS = models.known_ids()

requests = st.builds(
    RunRequest,
    model=st.sampled_from(MODELS),
    prompt=st.just("mine"),
    weights=st.sampled_from(["fp32", "bf16", "int8", "int8-dynamic", "int4"]),
    kv=st.sampled_from(["fp32", "bf16"]),
    cache=st.sampled_from(["contiguous", "none"]),
    device=st.sampled_from(["cpu", "cuda"]),
    max_tokens=st.integers(1, 512),
    raw=st.booleans(),
    temperature=st.integers(0, 500).map(lambda value: value / 100),
    top_k=st.integers(0, 1000),
    top_p=st.integers(1, 100).map(lambda value: value / 100),
    seed=st.integers(0, 2**53 - 1),
)


@given(requests)
def test_what_a_link_says_comes_back(request_: RunRequest) -> None:
    decoded = decode(encode(request_), MODELS, "mine")
    assert decoded.request == request_
    assert decoded.notes == ()


def test_defaults_and_the_prompt_are_left_out() -> None:
    assert encode(RunRequest(prompt="a secret")) == {}
    assert "secret" not in str(encode(RunRequest(prompt="a secret", seed=3)))


def test_a_prompt_in_a_link_is_ignored_and_said() -> None:
    decoded = decode({"lab_prompt": "injected"}, MODELS, "mine")
    assert decoded.request.prompt == "mine"
    assert decoded.notes == (
        "The link has a setting 'lab_prompt' that this page does not know; it is ignored.",
    )


@pytest.mark.parametrize(
    ("params", "field", "value", "note"),
    [
        (
            {"lab_tokens": "0"},
            "max_tokens",
            1,
            "New tokens must be from 1 to 512; the link says 0, so 1 is used.",
        ),
        (
            {"lab_tokens": "many"},
            "max_tokens",
            64,
            "New tokens must be a whole number; the link says 'many', so 64 is used.",
        ),
        ({"lab_tokens": "9" * 5000}, "max_tokens", 64, "New tokens must be a whole number"),
        ({"lab_tokens": "inf"}, "max_tokens", 64, "New tokens must be a whole number"),
        ({"lab_temperature": "nan"}, "temperature", 0.0, "The temperature must be a number"),
        ({"lab_temperature": "1e300"}, "temperature", 5.0, "The temperature must be from 0.0 to 5.0"),
        ({"lab_top_p": "-1"}, "top_p", 0.01, "Top-p must be from 0.01 to 1.0"),
        (
            {"lab_model": "<script>"},
            "model",
            "smollm2-135m",
            "The model '<script>' in the link is not known here",
        ),
        (
            {"lab_weights": "fp99"},
            "weights",
            "int4",
            "The weight format 'fp99' in the link is not known here",
        ),
        (
            {"lab_raw": "yes"},
            "raw",
            False,
            "The raw switch 'yes' in the link is not known here, so 0 is used.",
        ),
    ],
)
def test_what_does_not_hold_is_repaired_and_said(
    params: dict[str, str], field: str, value: object, note: str
) -> None:
    decoded = decode(params, MODELS, "mine")
    assert getattr(decoded.request, field) == value
    assert len(decoded.notes) == 1
    assert decoded.notes[0].startswith(note)
    assert len(decoded.notes[0]) < 200


@given(st.dictionaries(st.sampled_from([PREFIX + key for key in KEYS.values()]), st.text(max_size=60)))
def test_any_text_gives_a_valid_request(params: dict[str, str]) -> None:
    decode(params, MODELS, "mine").request.validate()


def test_other_pages_keys_are_theirs() -> None:
    assert decode({"m": "nothing", "v": "1"}, MODELS, "mine").notes == ()


def test_many_unknown_keys_do_not_flood_the_page() -> None:
    assert len(decode({f"lab_{index}": "x" for index in range(100)}, MODELS, "mine").notes) == 8


@pytest.mark.parametrize("name", LIMITS)
def test_the_limits_are_those_of_a_request(name: str) -> None:
    low, high = LIMITS[name]
    kind = type(getattr(RunRequest(), name))
    for allowed in (low, high):
        replace(RunRequest(), **{name: kind(allowed)}).validate()
    with pytest.raises(RequestError):
        replace(RunRequest(), **{name: kind(low - 1)}).validate()
