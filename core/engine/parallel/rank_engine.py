"""One process's engine: the same step loop, over its share of the model.

Every process plans the same steps. Its list of operators is that of its layers, with the exchanges
where the operator table of ``core.analytic.parallel`` has them, under the same names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from core.analytic.parallel import Stage, stages
from core.analytic.step_record import StepRecord
from core.engine.batch import Batch, Sequence
from core.engine.engine import Engine
from core.engine.files.checkpoint import Checkpoint
from core.engine.kv_cache import KVPool
from core.engine.parallel.shares import ShareOfWeights
from core.engine.parallel.wire import Wire
from core.engine.runner import run_each
from core.engine.sampling import Chooser
from core.engine.step import StepBytes, StepLabel, Stepper
from core.engine.transformer import Operator, Pass, Transformer


class RankEngine(Engine):
    """An engine that holds one process's share."""

    def __init__(
        self, checkpoint: Checkpoint, wire: Wire, *, weights: str, kv: str, device: torch.device
    ) -> None:
        whole = checkpoint.spec
        stage = stages(whole, wire.plan)[wire.stage]
        source = ShareOfWeights(checkpoint.weights, whole, wire.plan, wire.stage, wire.place)
        own = replace(checkpoint, spec=stage.shard, weights=source)
        super().__init__(own, weights=weights, kv=kv, cache="contiguous", device=device)
        self.runner = StageRunner(self.model, stage, wire, whole.vocab_size)
        self.stepper = _ToldStepper(self.runner, self._step_bytes(), device)
        self.spec = whole


class StageRunner:
    """Runs the operators of one stage; the logits are whole in the last one, and empty before it.

    Attributes:
        stage: which. wire: its exchanges. operators: its list, the exchanges included.
    """

    def __init__(self, model: Transformer, stage: Stage, wire: Wire, vocab_size: int) -> None:
        self.stage, self.wire = stage, wire
        self._model, self._vocab_size = model, vocab_size
        self.operators: list[Operator] = list(self._operators())

    @torch.inference_mode()
    def run(self, batch: Batch, pool: KVPool) -> Pass:
        """See ``StepRunner``."""
        return run_each(self.operators, batch, pool)

    def _operators(self) -> Iterator[Operator]:
        shared = self.wire.plan.tp > 1
        yield ("embedding", self.embedding) if self.stage.first else ("stage_receive", self.stage_receive)
        if self.stage.first and shared:
            yield "embedding_all_reduce", self.embedding_all_reduce
        for block in self._model.blocks:
            for name, operator in block.operators():
                if name == "mlp_residual" and shared:
                    yield "mlp_all_reduce", self.mlp_all_reduce
                yield name, operator
                if name == "output" and shared:
                    yield "attention_all_reduce", self.attention_all_reduce
        if not self.stage.last:
            yield "stage_send", self.stage_send
            return
        yield "final_norm", self._model.final_norm
        yield "lm_head", self._model.lm_head
        if shared:
            yield "logits_gather", self.logits_gather

    def embedding(self, x: Pass) -> None:
        """Look up the tokens whose vectors are kept here; the others stay zero."""
        rows = self.stage.shard.vocab_size
        local = x.batch.token_ids - self.wire.place * rows
        elsewhere = (local < 0) | (local >= rows)
        x.hidden = self._model.table(local.masked_fill(elsewhere, 0)).masked_fill_(elsewhere.unsqueeze(1), 0)
        x.cosine, x.sine = self._model.rope.rows(x.batch.positions)

    def embedding_all_reduce(self, x: Pass) -> None:
        """Each vector is kept in one place, so the sum is the vector."""
        self.wire.all_reduce("embedding_all_reduce", x.hidden)

    def attention_all_reduce(self, x: Pass) -> None:
        """The sum over the heads of all processes."""
        self.wire.all_reduce("attention_all_reduce", x.normed)

    def mlp_all_reduce(self, x: Pass) -> None:
        """The sum over the columns of all processes."""
        self.wire.all_reduce("mlp_all_reduce", x.normed)

    def logits_gather(self, x: Pass) -> None:
        """The words of all processes, without those that only fill the vocabulary up."""
        x.logits = self.wire.all_gather("logits_gather", x.logits)[:, : self._vocab_size].contiguous()

    def stage_receive(self, x: Pass) -> None:
        """The stream comes from the stage before; its place in the rotary tables is known here."""
        weight = self._model.final_norm_weight
        x.hidden = weight.new_empty(x.batch.new_tokens, weight.shape[0])
        self.wire.receive("stage_receive", x.hidden)
        x.cosine, x.sine = self._model.rope.rows(x.batch.positions)

    def stage_send(self, x: Pass) -> None:
        """The stream goes to the next stage."""
        self.wire.send("stage_send", x.hidden)
        x.logits = x.hidden.new_empty(x.batch.logit_rows.shape[0], 0)


class _ToldStepper(Stepper):
    """The last stage chooses the tokens and tells the others."""

    def __init__(self, runner: StageRunner, weights: StepBytes, device: torch.device) -> None:
        super().__init__(runner.stage.shard, runner, weights, device)
        self._stage, self._wire = runner.stage, runner.wire

    def step(
        self, plan: list[tuple[Sequence, int]], pool: KVPool, sampler: Chooser, label: StepLabel
    ) -> tuple[list[list[int]], StepRecord]:
        """See ``Stepper``."""
        if self._wire.plan.pp > 1:
            sampler = _Told(sampler, self._stage, self._wire)
        return super().step(plan, pool, sampler, label)


@dataclass(frozen=True, slots=True)
class _Told:
    """A chooser whose tokens are those of the last stage."""

    chooser: Chooser
    stage: Stage
    wire: Wire

    @property
    def is_greedy(self) -> bool:
        """See ``Chooser``."""
        return self.chooser.is_greedy

    def choose(self, logits: Tensor) -> Tensor:
        """See ``Chooser``."""
        if self.stage.last:
            chosen = self.chooser.choose(logits)
        else:
            chosen = torch.empty(logits.shape[0], dtype=torch.int64, device=logits.device)
        self.wire.tell("tokens_told", chosen)
        return chosen
