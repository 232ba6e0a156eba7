"""The numbers of "MHA, MQA, GQA, MLA": what a token leaves, by who shares, and on each of several chips."""

from __future__ import annotations

from typing import Final

from core.catalog.formats import number_format
from core.lesson.amount import Amount, LessonCase
from core.lesson.quantities.head_sharing import (
    GQA,
    MHA,
    MLA,
    MQA,
    Sharing,
    chosen,
    head_shape,
    sharing,
    token_bytes,
)
from core.lesson.quantities.quantity import Quantity
from core.units import BITS_PER_BYTE, KIB


def _token(case: LessonCase, how: Sharing | None, chips: int = 1) -> Amount:
    return Amount(token_bytes(case.model, how, case.scenario.kv, chips) / KIB, "KiB")


def query_heads(case: LessonCase) -> Amount:
    """Query heads of a layer."""
    return Amount(head_shape(case.model).query_heads)


def layers(case: LessonCase) -> Amount:
    """Layers with attention."""
    return Amount(head_shape(case.model).layers)


def vector_pair(case: LessonCase) -> Amount:
    """Numbers in a key and a value of one head together."""
    shape = head_shape(case.model)
    return Amount(shape.key_dim + shape.value_dim)


def head_dim(case: LessonCase) -> Amount:
    """Numbers in one key."""
    return Amount(head_shape(case.model).key_dim)


def hidden_size(case: LessonCase) -> Amount:
    """Numbers in a token's vector between layers."""
    return Amount(case.model.hidden_size)


def element_bytes(case: LessonCase) -> Amount:
    """Bytes of one number in the cache, scales apart."""
    return Amount(number_format(case.scenario.kv, "kv").payload_bits / BITS_PER_BYTE, "B")


def kv_heads(case: LessonCase) -> Amount:
    """KV heads that the page's control asks for; those of a group where it asks for a latent."""
    how = chosen(case)
    return Amount(how.kv_heads or sharing(case, GQA).kv_heads or 1)


def own_kv_heads(case: LessonCase) -> Amount:
    """KV heads of the model as it is; 1 where it keeps a latent for all."""
    return Amount(head_shape(case.model).kv_heads or 1)


def latent(case: LessonCase) -> Amount:
    """Numbers of the page's latent."""
    return Amount(case.number("latent"))


def own_latent(case: LessonCase) -> Amount:
    """Numbers of the model's own latent; the page's where it has none."""
    return Amount(head_shape(case.model).latent or case.number("latent"))


def rotary_key(case: LessonCase) -> Amount:
    """Numbers of the rotary key beside a latent."""
    return Amount(head_shape(case.model).rotary_dim)


def chips(case: LessonCase) -> Amount:
    """Chips with tensor parallelism."""
    return Amount(case.number("chips"))


# --- What a token leaves --------------------------------------------------------------------------


def mha_token(case: LessonCase) -> Amount:
    """If every query head had a key and a value of its own."""
    return _token(case, sharing(case, MHA))


def mqa_token(case: LessonCase) -> Amount:
    """If all query heads shared one key and one value."""
    return _token(case, sharing(case, MQA))


def own_token(case: LessonCase) -> Amount:
    """As the model is."""
    return _token(case, None)


def heads_token(case: LessonCase) -> Amount:
    """With the page's KV heads."""
    return _token(case, Sharing(GQA, kv_heads=round(kv_heads(case).value)))


def latent_token(case: LessonCase) -> Amount:
    """With the page's latent."""
    return _token(case, sharing(case, MLA))


def own_latent_token(case: LessonCase) -> Amount:
    """With the model's own latent, or the page's where it has none."""
    return _token(case, Sharing(MLA, latent=round(own_latent(case).value)))


def latent_kept_twice(case: LessonCase) -> Amount:
    """What comes out where latent and rotary key are counted for keys and for values."""
    return Amount(2 * own_latent_token(case).value, "KiB")


def latent_twice_alone(case: LessonCase) -> Amount:
    """What comes out where the latent is counted twice, and the rotary key forgotten."""
    return Amount(2 * latent_alone(case).value, "KiB")


def latent_alone(case: LessonCase) -> Amount:
    """What comes out where the rotary key is forgotten."""
    numbers = own_latent(case).value
    return Amount(own_latent_token(case).value * numbers / (numbers + rotary_key(case).value), "KiB")


def latent_by_heads(case: LessonCase) -> Amount:
    """What comes out where each query head keeps a latent."""
    return Amount(own_latent_token(case).value * query_heads(case).value, "KiB")


# --- On each chip ---------------------------------------------------------------------------------


def chip_token(case: LessonCase) -> Amount:
    """What lies on each chip of the model as it is."""
    return _token(case, None, round(case.number("chips")))


def chip_heads_token(case: LessonCase) -> Amount:
    """What lies on each chip with the page's KV heads."""
    how = Sharing(GQA, kv_heads=round(kv_heads(case).value))
    return _token(case, how, round(case.number("chips")))


def chip_latent_token(case: LessonCase) -> Amount:
    """What lies on each chip with the page's latent: all of it."""
    return _token(case, sharing(case, MLA), round(case.number("chips")))


def divided_token(case: LessonCase) -> Amount:
    """What comes out where the cache is divided by the chips, whatever there is to divide."""
    return Amount(own_token(case).value / case.number("chips"), "KiB")


def chip_token_by_hidden_size(case: LessonCase) -> Amount:
    """What comes out where the hidden size is taken for the width of keys and values, and divided."""
    numbers = 2 * case.model.hidden_size * layers(case).value * element_bytes(case).value
    return Amount(numbers / case.number("chips") / KIB, "KiB")


def mha_factor(case: LessonCase) -> Amount:
    """How many times as much a KV head for each query head would keep as the model does."""
    return Amount(mha_token(case).value / own_token(case).value, "×")


QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        query_heads, layers, vector_pair, head_dim, hidden_size, element_bytes, kv_heads, own_kv_heads,
        latent, own_latent, rotary_key, chips, mha_token, mqa_token, own_token, heads_token, latent_token,
        own_latent_token, latent_kept_twice, latent_twice_alone, latent_alone, latent_by_heads, chip_token,
        chip_heads_token, chip_latent_token, divided_token, chip_token_by_hidden_size, mha_factor,
    )
}  # fmt: skip
