"""What the processes of a split model hand to each other in one pass, by the name of the exchange."""

from __future__ import annotations

from dataclasses import dataclass

from core.analytic.parallel import ParallelPlan, Stage, device_operators
from core.catalog.model import ModelSpec


@dataclass(frozen=True, slots=True)
class Exchanged:
    """Exchanges of one name, as one process takes part in them.

    Attributes:
        count: how many.
        message_bytes: of the tensors that are exchanged, all of them together. What goes over the wire for
            it depends on the algorithm (``core.analytic.collectives``).
    """

    count: int
    message_bytes: int

    def __add__(self, other: Exchanged) -> Exchanged:
        return Exchanged(self.count + other.count, self.message_bytes + other.message_bytes)


def step_exchanges(
    model: ModelSpec,
    plan: ParallelPlan,
    stage: Stage,
    *,
    new_tokens: int,
    context: int,
    weights: str,
    kv: str,
) -> dict[str, Exchanged]:
    """Exchanges of one process of a stage in one pass of one sequence.

    They are the collectives of the operator table: with tensor parallelism two all-reduces a layer, one
    after the embedding and one gather of the logits, each of ``T * E`` numbers and of the vocabulary;
    with a pipeline one send of ``T * E`` numbers from each stage but the last.

    >>> from core.analytic.parallel import stages
    >>> from core.catalog.models import model
    >>> spec, plan = model("smollm2-135m"), ParallelPlan(tp=3)
    >>> found = step_exchanges(spec, plan, stages(spec, plan)[0], new_tokens=1, context=9,
    ...     weights="fp32", kv="fp32")
    >>> found["mlp_all_reduce"], found["logits_gather"]
    (Exchanged(count=30, message_bytes=69120), Exchanged(count=1, message_bytes=196608))
    """
    table = device_operators(
        model, plan, stage, batch=1, new_tokens=new_tokens, context=context, weights=weights, kv=kv
    )
    found: dict[str, Exchanged] = {}
    for row, collective in enumerate(table.collectives):
        if collective is not None:
            message = round(float(table.link_bytes[row]) / collective.wire_factor())
            one = Exchanged(int(table.repeats[row]), message)
            name = table.names[row]
            found[name] = found[name] + one if name in found else one
    return found
