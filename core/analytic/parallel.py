"""A model split over chips: what each chip holds, computes and sends.

A replica is ``tp * pp`` chips: ``pp`` stages in a row, each layer's matrices spread over ``tp`` chips.
``dp`` replicas serve requests of their own. The experts of a layer are spread over ``ep`` chips: within
the tp chips of a stage (ep <= tp, each expert then split over tp / ep of them), or across replicas, whose
tokens then meet at the experts (ep a multiple of tp). ``cp`` of the tp chips share the tokens of a
sequence's cache; that removes copies where KV heads or latents are fewer than chips. With ``sp`` the tp
chips also share the tokens of norms and residuals, and each all-reduce becomes a scatter and a gather.
Chips are numbered by replica, stage and place in the stage, so a stage's chips are neighbours.

A chip's share is the same model with fewer heads, columns and layers, so every formula of the whole
holds for it. Matrices are split by columns where a product begins a part (QKV, gate and up) and by rows
where it ends one (output, down), which then needs one all-reduce; norms, routers, latents and KV heads
fewer than chips are copies. Nothing here is checked for sense: ``constraints.violations`` does that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import ceil
from typing import Final, TypeVar

from core.analytic.collectives import Collective
from core.analytic.forward_pass import ForwardPass, LatentForm, Split, exchange_rows
from core.analytic.operators import beginning_rows, ending_rows, forward_pass, layer_rows
from core.analytic.params import layer_kinds, outer_weights
from core.analytic.shares import shard_layers
from core.analytic.table import Operators, Row
from core.catalog.model import Layer, ModelSpec
from core.units import Number

#: Rows of a vocabulary are padded to a multiple of this before they are split, as vLLM does.
#: https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/vocab_parallel_embedding.py
VOCAB_PADDING: Final = 64


@dataclass(frozen=True, slots=True)
class ParallelPlan:
    """How many chips share what; all 1 is one chip.

    >>> ParallelPlan(tp=8, pp=2, dp=2).chips
    32
    """

    tp: int = 1
    pp: int = 1
    ep: int = 1
    dp: int = 1
    cp: int = 1
    sp: int = 1

    @property
    def chips(self) -> int:
        """All of them together."""
        return self.tp * self.pp * self.dp

    @property
    def expert_tensor(self) -> int:
        """Chips that share one expert's matrices."""
        return max(self.tp // self.ep, 1)

    @property
    def pooled(self) -> int:
        """Replicas whose tokens meet at the same experts."""
        return max(self.ep // self.tp, 1)

    @property
    def split(self) -> Split:
        """The same as a forward pass needs it."""
        spread = self.ep if self.ep <= self.tp else self.tp * self.pp * self.pooled
        return Split(self.tp, self.ep, self.pooled, self.cp, self.sp, spread)


Made = TypeVar("Made")

#: Nothing is shared.
ONE_CHIP: Final = ParallelPlan()


@dataclass(frozen=True, slots=True)
class Stage:
    """One pipeline stage as one of its chips sees it.

    Attributes:
        index: from 0. first, last: it holds the embedding, the head. whole_layers: layers of the model
            that it runs. shard: the model that one of its chips holds, without what other stages hold.
    """

    index: int
    first: bool
    last: bool
    whole_layers: tuple[Layer, ...]
    shard: ModelSpec


def stage_layers(num_layers: int, pp: int) -> tuple[int, ...]:
    """Layers of each stage: equal parts, and what remains to the stages before the last.

    First and last stage are spared as long as possible, since they hold the embedding and the head. This
    is vLLM's rule (``get_pp_indices``); a later version gives the remainder to the last stages.

    >>> stage_layers(61, 4), stage_layers(10, 3)
    ((15, 15, 16, 15), (3, 4, 3))
    """
    layers = [num_layers // pp] * pp
    for back in range(2, num_layers % pp + 2):
        layers[-back] += 1
    return tuple(layers)


def padded_vocab(vocab_size: int, tp: int) -> int:
    """Rows of the embedding and the head on one chip, padding included.

    >>> padded_vocab(32001, 8), padded_vocab(32001, 1)
    (4008, 32001)
    """
    if tp == 1:
        return vocab_size
    return ceil(ceil(vocab_size / VOCAB_PADDING) * VOCAB_PADDING / tp)


@cache
def stages(model: ModelSpec, plan: ParallelPlan) -> tuple[Stage, ...]:
    """The stages of a replica, each as one of its chips holds it; chips of a stage are alike.

    >>> from core.catalog.models import model
    >>> [len(stage.whole_layers) for stage in stages(model("llama-3.1-8b"), ParallelPlan(tp=2, pp=3))]
    [11, 11, 10]
    """
    found: list[Stage] = []
    start = 0
    for index, number in enumerate(stage_layers(model.num_layers, plan.pp)):
        layers = model.layers[start : start + number]
        shard = replace(
            model,
            layers=shard_layers(layers, plan.tp, plan.expert_tensor),
            vocab_size=padded_vocab(model.vocab_size, plan.tp),
        )
        found.append(Stage(index, index == 0, index == plan.pp - 1, layers, shard))
        start += number
    return tuple(found)


def each_stage(found: tuple[Stage, ...], make: Callable[[Stage], Made]) -> tuple[Made, ...]:
    """What ``make`` says of each stage; neighbours that hold the same are asked once.

    >>> from core.catalog.models import model
    >>> asked, found = [], stages(model("llama-3.1-8b"), ParallelPlan(pp=8))
    >>> len(each_stage(found, asked.append)), len(asked)
    (8, 3)
    """
    made: list[Made] = []
    for before, stage in zip((None, *found), found, strict=False):
        alike = before is not None and replace(before, index=stage.index) == stage
        made.append(made[-1] if alike else make(stage))
    return tuple(made)


def device_operators(
    model: ModelSpec,
    plan: ParallelPlan,
    stage: Stage,
    *,
    batch: Number,
    new_tokens: Number,
    context: Number,
    weights: str,
    kv: str,
    logit_rows: Number | None = None,
    latent: LatentForm = "absorbed",
) -> Operators:
    """The operator table of one chip of a stage, its collectives included.

    Arguments as ``operators`` takes them; the batch is that of one replica (of one micro-batch, where a
    pipeline has several in flight). With one chip it is the table of ``operators``.

    Raises:
        FormatError, ScenarioError: as ``operators``.

    >>> from core.catalog.models import model
    >>> spec, plan = model("llama-3.3-70b"), ParallelPlan(tp=8)
    >>> table = device_operators(spec, plan, stages(spec, plan)[0], batch=1, new_tokens=1, context=8192,
    ...     weights="bf16", kv="bf16")
    >>> int(table.total("weight_stored_bytes")), int(table.total("kv_read_bytes"))
    (17640734720, 335544320)
    """
    forward = forward_pass(
        model,
        batch=batch,
        new_tokens=new_tokens,
        context=context,
        weights=weights,
        kv=kv,
        logit_rows=logit_rows,
        latent=latent,
        split=plan.split,
    )
    return Operators.build(_rows(model, plan, stage, forward))


def _rows(model: ModelSpec, plan: ParallelPlan, stage: Stage, forward: ForwardPass) -> list[Row]:
    shard = stage.shard
    outer = outer_weights(shard)
    rows = beginning_rows(shard, outer, forward) if stage.first else []
    for layer, repeats in layer_kinds(shard):
        rows += layer_rows(layer, repeats, forward)
    if stage.last:
        head_alone = forward
        if not stage.first:
            # The last stage has no embedding, so a tied head is a copy of its own.
            head_alone = replace(forward, plan=replace(forward.plan, shared_table=False))
        rows += ending_rows(shard, outer, head_alone)
    else:
        passed = forward.moved(model.hidden_size)
        rows += exchange_rows("stage_send", Collective("send", 2, plan.tp * plan.pp), 1, forward, passed)
    return rows
