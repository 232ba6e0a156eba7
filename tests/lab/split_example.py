"""A result of the experiment "split" that holds together, made without torch."""

from typing import Any

from core.analytic.communication import step_exchanges
from core.analytic.parallel import stages
from core.analytic.split_record import CollectiveRecord, SplitRecord
from core.catalog.models import model
from core.lab.split_request import SplitRequest
from core.lab.split_trial import SplitTrial
from tests.lab import examples


def split_trial(request: SplitRequest, *, others: bool = False, **changes: Any) -> SplitTrial:
    """What three processes did: one step of five tokens, then one of one; with ``others``, other tokens."""
    spec = model(request.model)
    found = []
    for stage in stages(spec, request.plan):
        known = [
            step_exchanges(spec, request.plan, stage, new_tokens=tokens, context=5, weights="fp32", kv="fp32")
            for tokens in (5, 1)
        ]
        for name in known[0]:
            both = known[0][name] + known[1][name]
            found.append(_collective(stage.index, name, both.count, both.message_bytes))
    if request.pp > 1:
        found.append(_collective(0, "tokens_told", 2, 16, predicted=False))
    ranks = request.tp * request.pp
    record = SplitRecord(
        model=request.model,
        weights="fp32",
        kv="fp32",
        device="cpu",
        backend="gloo",
        tp=request.tp,
        pp=request.pp,
        threads=1,
        single_threads=2,
        prompt_tokens=5,
        steps=2,
        token_ids=(7, 8),
        single_token_ids=(7, 9) if others else (7, 8),
        text="Paris.",
        logits_error=1.7e-6,
        stored_bytes=(180_000_000,) * ranks,
        single_stored_bytes=538_000_000,
        collectives=tuple(found),
        tokens_per_s=8.1,
        single_tokens_per_s=9.3,
    )
    record_of_host = examples.record().host
    return SplitTrial("2026-11-30T02:00:00+00:00", record_of_host, request, spec.name, record, **changes)


def _collective(stage: int, name: str, count: int, size: int, *, predicted: bool = True) -> CollectiveRecord:
    known = (count, size) if predicted else (None, None)
    return CollectiveRecord(stage, name, 3, count, size, 0.002, 0.001, 0.004, *known)
