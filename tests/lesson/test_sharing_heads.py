"""The numbers of page 7 against the arithmetic of heads, latents and chips."""

import math

import pytest

from core.analytic.kv_cache import bytes_per_token
from core.catalog.models import catalogue, model
from core.errors import FormatError
from core.lesson.amount import LessonCase
from core.lesson.catalogue_case import catalogue_case
from core.lesson.lesson_file import lessons
from core.lesson.quantities.head_sharing import (
    WAYS,
    Sharing,
    chosen,
    head_shape,
    shared_caches,
    shared_model,
    sharing,
    token_bytes,
)
from tests.lesson.diagnosed import is_diagnosed

LESSON = lessons()["sharing_heads"]
RUNNING = model("llama-3.1-8b")


def case(**values: str | int) -> LessonCase:
    return catalogue_case({**LESSON.base, **values})


def value(name: str, now: LessonCase) -> float:
    return LESSON.quantities[name](now).value


def test_the_running_model_with_each_way_to_share() -> None:
    now = case()
    assert value("mha_token", now) == 2 * 32 * 32 * 128 * 2 / 1024 == 512
    assert value("own_token", now) == 128
    assert value("mqa_token", now) == 16
    assert value("latent_token", now) == 32 * (512 + 64) * 2 / 1024
    assert value("mha_factor", now) == 4


def test_a_latent_of_deepseek_is_counted_once() -> None:
    now = case(model="deepseek-v3")
    assert value("own_latent_token", now) == pytest.approx(61 * 576 * 2 / 1024)
    assert value("own_token", now) == value("own_latent_token", now)
    assert value("latent_twice_alone", now) / value("own_latent_token", now) == pytest.approx(1024 / 576)
    assert value("latent_by_heads", now) == 128 * value("own_latent_token", now)


@pytest.mark.parametrize("chips", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("heads", [1, 2, 8, 32])
def test_kv_heads_are_divided_until_each_chip_has_one(heads: int, chips: int) -> None:
    how = Sharing("GQA", kv_heads=heads)
    expected = 32 * math.ceil(heads / chips) * 2 * 128 * 2
    assert token_bytes(RUNNING, how, "bf16", chips) == expected


@pytest.mark.parametrize("name", ["llama-3.1-8b", "deepseek-v3", "kimi-k2"])
def test_a_latent_lies_whole_on_each_chip(name: str) -> None:
    whole, part = (token_bytes(model(name), Sharing("MLA", latent=512), "bf16", chips) for chips in (1, 8))
    assert whole == part


@pytest.mark.parametrize("name", catalogue())
def test_every_model_is_shared_anew_or_refused_with_a_sentence(name: str) -> None:
    spec = model(name)
    try:
        shape = head_shape(spec)
    except FormatError as refused:
        assert "must have attention heads" in str(refused)
        return
    now = case(model=name)
    by_way = {way: value_of(now, way) for way in WAYS}
    assert by_way["MHA"] >= by_way["GQA"] >= by_way["MQA"] > 0
    assert by_way["MHA"] == pytest.approx(shape.query_heads * by_way["MQA"])
    if shape.latent is not None and shape.layers == spec.num_layers:
        own = Sharing("MLA", latent=shape.latent)
        assert token_bytes(spec, own, "bf16", 1) == bytes_per_token(spec, "bf16")


def value_of(now: LessonCase, way: str) -> int:
    return token_bytes(now.model, sharing(now, way), "bf16", 1)


def test_the_same_sharing_as_the_models_own_is_the_same_cache() -> None:
    again = shared_model(RUNNING, Sharing("GQA", kv_heads=8))
    assert bytes_per_token(again, "bf16") == bytes_per_token(RUNNING, "bf16")


def test_controls_say_what_is_chosen() -> None:
    assert chosen(case(sharing="MHA")).kv_heads == 32
    assert chosen(case(sharing="GQA", group="16")).kv_heads == 2
    assert chosen(case(sharing="GQA", group="16", model="qwen2.5-0.5b")).kv_heads == 1
    assert chosen(case(sharing="MQA")).kv_heads == 1
    assert chosen(case(sharing="MLA", latent="256")).latent == 256


def test_copies_are_told() -> None:
    copies = {cache.name.partition(":")[0]: cache.copies for cache in shared_caches(case(chips="16"))}
    assert copies["MHA"] == 1
    assert copies["GQA"] == 2
    assert copies["MQA"] == copies["MLA"] == 16


@pytest.mark.parametrize(
    ("exercise", "name", "says"),
    [
        (0, "latent_kept_twice", "keeps everything twice"),
        (0, "latent_twice_alone", "keeps the latent twice"),
        (0, "latent_alone", "forgets the rotary key"),
        (0, "latent_by_heads", "a latent for each of the"),
        (1, "divided_token", "divides the cache by the chips"),
        (1, "own_token", "That is all of the cache"),
        (1, "chip_token_by_hidden_size", "takes the hidden size"),
    ],
)
def test_wrong_answers_are_diagnosed(exercise: int, name: str, says: str) -> None:
    is_diagnosed(LESSON, exercise, name, says)
