"""What page 19 splits and what it says of it: the request behind its choice, and the record in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.analytic.collectives import Collective, CollectiveKind, fastest_s
from core.analytic.split_record import CollectiveRecord, SplitRecord
from core.lab.local_link import LocalLink
from core.lab.split_request import SplitRequest
from core.lesson.amount import Value
from core.lesson.measures import Checked
from core.units import format_count, format_gb, format_gib, significant

#: How the embedded model can be split, as the page calls it; its nine heads divide by three.
WAYS: Final[dict[str, tuple[int, int]]] = {
    "3 processes share every layer (TP 3)": (3, 1),
    "3 stages in a row (PP 3)": (1, 3),
}
_MILLION: Final = 1e6
_NAMES: Final[dict[str, str]] = {
    "embedding_all_reduce": "sum after the embedding",
    "attention_all_reduce": "sums after attention",
    "mlp_all_reduce": "sums after the MLP",
    "logits_gather": "gather of the logits",
    "stage_send": "sent to the next stage",
    "stage_receive": "received from the stage before",
    "tokens_told": "the chosen token, told to all",
}
#: What is predicted, and as what.
_KINDS: Final[dict[str, CollectiveKind]] = {
    "embedding_all_reduce": "all_reduce",
    "attention_all_reduce": "all_reduce",
    "mlp_all_reduce": "all_reduce",
    "logits_gather": "all_gather",
}


def request_of(values: Mapping[str, Value]) -> SplitRequest:
    """The request behind a page's settings."""
    tp, pp = WAYS[str(values["ways"])]
    return SplitRequest(tp=tp, pp=pp)


def same_text(record: SplitRecord) -> Checked:
    """The sum of the parts is the whole."""
    ranks, count = record.tp * record.pp, len(record.token_ids)
    wrote = f"the same {count} tokens as" if record.equal_to_single else "other tokens than"
    parts = f"{_MILLION * record.logits_error:.1f} millionths of the largest"
    off = f"the logits after the prompt differ by {parts}"
    return Checked(record.equal_to_single, f"{ranks} processes wrote {wrote} one; {off}.")


def same_traffic(record: SplitRecord) -> Checked:
    """What was counted on the tensors is what the operator table says."""
    known = [each for each in record.collectives if each.predicted_bytes is not None]
    count, size = (sum(getattr(each, name) for each in known) for name in ("count", "message_bytes"))
    counted = f"{count:,} exchanges of {format_gb(size)} in all"
    if record.is_as_predicted:
        return Checked(True, f"{counted}, counted on the tensors, are those of the operator table.")
    wrong = next(each for each in known if not each.is_as_predicted)
    return Checked(
        False,
        f"{exchange_name(wrong, record)}: {wrong.message_bytes:,} bytes were counted, "
        f"{wrong.predicted_bytes:,} predicted.",
    )


def exchange_name(collective: CollectiveRecord, record: SplitRecord) -> str:
    """An exchange in words, with its stage where there are several."""
    name = _NAMES.get(collective.name, collective.name.replace("_", " "))
    return name if record.pp == 1 else f"stage {collective.stage + 1}: {name}"


def predicted_s(collective: CollectiveRecord, link: LocalLink) -> float | None:
    """Seconds of an exchange with a message of average size; None for what no calibration times.

    The processes are taken to be there at the same moment, and to wait for nothing but the exchange.
    """
    kind = _KINDS.get(collective.name)
    if kind is None or not collective.count:
        return None
    message = collective.message_bytes / collective.count
    return float(fastest_s(Collective(kind, collective.ranks), message, link.speed))


def cost_words(record: SplitRecord) -> str:
    """What each process keeps, and what the exchanges cost here."""
    kept = [format_gib(size) for size in record.stored_bytes]
    each = kept[0] if len(set(kept)) == 1 else f"{', '.join(kept[:-1])} and {kept[-1]}"
    said = f"Weights on each process: {each}; {format_gib(record.single_stored_bytes)} in one."
    if record.tokens_per_s is None or record.single_tokens_per_s is None:
        return said
    together, alone = significant(record.tokens_per_s), significant(record.single_tokens_per_s)
    each, its = format_count(record.threads, "thread"), format_count(record.single_threads, "thread")
    return (
        f"{said} With {each} each, the processes write {together} tokens/s; one with {its} writes {alone}. "
        "They share one processor and its memory: a split adds neither."
    )
