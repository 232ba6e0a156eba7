"""Wrong answers with a reason: each is a factor between what was typed and what is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from core.lesson.amount import UNITS, Amount, LessonCase, held_tokens
from core.units import BITS_PER_BYTE


@dataclass(frozen=True, slots=True)
class Slip:
    """One way to be wrong: the typed number is ``factor`` times the right one, and why."""

    factor: float
    says: str


#: Which slips a case offers; the amount is the right answer.
Diagnosis = Callable[[LessonCase, Amount], Iterator[Slip]]


def _keys_and_values(_: LessonCase, __: Amount) -> Iterator[Slip]:
    yield Slip(
        1 / 2, "That is half of it: a token leaves a key and a value, so there are two vectors a head."
    )
    yield Slip(2, "That is twice as much: the 2 for keys and values belongs in once.")


def _both_directions(_: LessonCase, __: Amount) -> Iterator[Slip]:
    says = "count the link in one direction; vendors print both directions together"
    yield Slip(1 / 2, f"That is half of it: {says}.")
    yield Slip(2, f"That is twice as much: {says}.")


def _multiply_and_add(_: LessonCase, __: Amount) -> Iterator[Slip]:
    yield Slip(1 / 2, "That is half of it: a multiply and an add are two FLOPs, not one.")
    yield Slip(2, "That is twice as much: the FLOPs already count a multiply and an add.")


def _bits_for_bytes(_: LessonCase, __: Amount) -> Iterator[Slip]:
    yield Slip(BITS_PER_BYTE, "That is 8 times as much: it looks like bits. A byte has 8 bits.")
    yield Slip(
        1 / BITS_PER_BYTE, "That is an eighth of it: divide bits by 8 once only; bytes are bytes already."
    )


def _query_heads(case: LessonCase, _: Amount) -> Iterator[Slip]:
    attention = case.model.layers[0].attention
    factor = attention.num_heads / attention.num_kv_heads
    yield Slip(
        factor,
        f"That counts all {attention.num_heads} query heads. Only the {attention.num_kv_heads} KV heads keep "
        "keys and values.",
    )
    yield Slip(1 / factor, f"That divides by {factor:g} once too often: the KV heads are counted already.")


def _one_layer(case: LessonCase, _: Amount) -> Iterator[Slip]:
    yield Slip(
        1 / case.model.num_layers, f"That is one layer. This model has {case.model.num_layers} of them."
    )
    yield Slip(case.model.num_layers, "That counts the layers twice.")


def _gib_for_gb(_: LessonCase, right: Amount) -> Iterator[Slip]:
    """The value in the neighbouring unit, written with the unit that was asked for."""
    other = {"GB": "GiB", "MB": "MiB", "kB": "KiB", "TB": "TiB"}
    pairs = {**other, **{binary: decimal for decimal, binary in other.items()}}
    if right.unit in pairs:
        neighbour = pairs[right.unit]
        factor = UNITS[right.unit][1] / UNITS[neighbour][1]
        size = "2**30" if right.unit in {"GB", "GiB"} else "a power of 2"
        yield Slip(
            factor,
            f"That is the number of {neighbour}. The question asks for {right.unit}: a decimal prefix is a "
            f"power of 10, a binary one is {size}.",
        )


def _sparse_peak(_: LessonCase, right: Amount) -> Iterator[Slip]:
    factor = 1 / 2 if right.kind == "seconds" else 2
    yield Slip(
        factor,
        "That takes a peak twice as high: vendors print it with 2:4 sparsity, which a dense model does not "
        "have. Take the dense peak.",
    )


def _thousand(_: LessonCase, right: Amount) -> Iterator[Slip]:
    unit = f" The answer is in {right.unit}." if right.unit else ""
    yield Slip(1000, f"That is a thousand times as much: check milli and kilo.{unit}")
    yield Slip(1 / 1000, f"That is a thousandth of it: check milli and kilo.{unit}")


def _percent(_: LessonCase, __: Amount) -> Iterator[Slip]:
    yield Slip(1 / 100, "That is the share as a fraction of one. The question asks for percent: times 100.")


def _per_token(case: LessonCase, _: Amount) -> Iterator[Slip]:
    for tokens in (held_tokens(case), case.scenario.input_tokens):
        yield Slip(1 / tokens, f"That is for one token. The question asks for all {tokens:,} of them.")


def _batch(case: LessonCase, _: Amount) -> Iterator[Slip]:
    batch = case.scenario.batch
    yield Slip(1 / batch, f"That is for one sequence. There are {batch:,} of them.")
    yield Slip(batch, f"That counts the {batch:,} sequences once too often.")


#: Every diagnosis that an exercise may list, by id.
DIAGNOSES: Final[dict[str, Diagnosis]] = {
    "keys_and_values": _keys_and_values,
    "both_directions": _both_directions,
    "multiply_and_add": _multiply_and_add,
    "bits_for_bytes": _bits_for_bytes,
    "query_heads": _query_heads,
    "one_layer": _one_layer,
    "gib_for_gb": _gib_for_gb,
    "sparse_peak": _sparse_peak,
    "thousand": _thousand,
    "percent": _percent,
    "per_token": _per_token,
    "batch": _batch,
}
