"""What a run will take, before it runs: arithmetic over the operator table, nothing else.

The machine comes from a calibration that never saw the run. The prompt is read in one prefill step
(with a cache, a long one in pieces), whose end gives the first token; each later step gives one more:

* with a cache, later step k computes 1 new token at context ``prompt + k``;
* without, it computes all ``prompt + k`` tokens again.

``TTFT`` is the sum of the prefill steps, ``TPOT`` the mean of the later ones. Requests that arrive together
share every step, their prompts the first.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.kv_cache import cache_bytes
from core.analytic.latency import bound, operator_times, step_time
from core.analytic.machine import Machine
from core.analytic.memory import activation_bytes
from core.analytic.operators import operators
from core.analytic.params import stored_bytes
from core.analytic.table import Operators
from core.catalog.model import ModelSpec
from core.lab.checked_json import Reader
from core.lab.rehearsal import AS_PREDICTED, Rehearsal
from core.lab.request import RunRequest
from core.lab.run_shape import RunShape

#: What a run's bytes do in the memory of the device: weights kept, cache at its fullest, activations.
_MEMORY: Final = ("weights_bytes", "kv_bytes", "activation_bytes")


@dataclass(frozen=True, slots=True)
class PhasePrediction:
    """A whole prefill, or the mean decode step.

    Attributes:
        operators_s: seconds by operator name, all its repeats together, in execution order.
        fixed_s: seconds besides the operators.
        flops: multiplies and adds. weight_bytes, kv_bytes: parameters read; cache read and written.
        moved_bytes: all of that and the activations.
        limit: what it waits for most: "memory", "compute" or "overhead". factor: how many times as
            long that asks for as the next limit.
    """

    operators_s: dict[str, float]
    fixed_s: float
    flops: float
    weight_bytes: float
    kv_bytes: float
    moved_bytes: float
    limit: str
    factor: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.fixed_s + sum(self.operators_s.values())


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a run is predicted to take, and what follows from that.

    Attributes:
        prompt_tokens: of the prompt.
        prefill_step_s: seconds of each prefill step. decode_step_s: of each later step.
        prefill: all prefill steps. decode: the mean later step; None where there is one token only.
        memory: bytes of weights, KV cache and activations.
        bandwidth_bytes_per_s: the machine's ceiling, the denominator of MBU.
    """

    prompt_tokens: int
    prefill_step_s: tuple[float, ...]
    decode_step_s: tuple[float, ...]
    prefill: PhasePrediction
    decode: PhasePrediction | None
    memory: dict[str, float]
    bandwidth_bytes_per_s: float

    @property
    def step_s(self) -> tuple[float, ...]:
        """Seconds of every step, in order."""
        return self.prefill_step_s + self.decode_step_s

    @property
    def ttft_s(self) -> float:
        """Time to first token: the prefill."""
        return sum(self.prefill_step_s)

    @property
    def tpot_s(self) -> float | None:
        """Time per output token: the mean step after the prefill."""
        later = self.decode_step_s
        return sum(later) / len(later) if later else None

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens written in a second, after the first."""
        return None if self.tpot_s is None else 1.0 / self.tpot_s

    @property
    def end_to_end_s(self) -> float:
        """Until the last token."""
        return sum(self.step_s)

    @property
    def mbu(self) -> float | None:
        """Memory bandwidth utilisation of the decode: weights and cache moved, over TPOT x ceiling."""
        if self.decode is None or self.tpot_s is None:
            return None
        return mbu(self.decode.weight_bytes + self.decode.kv_bytes, self.tpot_s, self.bandwidth_bytes_per_s)

    @property
    def total_memory_bytes(self) -> float:
        """Weights, cache and activations together."""
        return sum(self.memory.values())

    def to_json(self) -> dict[str, Any]:
        """A plain object, headline figures included for readers of the file."""
        return {
            **asdict(self),
            "prefill_step_s": list(self.prefill_step_s),
            "decode_step_s": list(self.decode_step_s),
            "ttft_s": self.ttft_s,
            "tpot_s": self.tpot_s,
            "mbu": self.mbu,
        }

    @classmethod
    def from_reader(cls, reader: Reader) -> Prediction:
        """Read a prediction back; the headline figures are computed again, not read.

        Raises:
            RecordError: a value is missing, of another type, or out of its bounds.
        """
        prefill_step_s = reader.numbers("prefill_step_s", 1e-9, 1e6)
        if not prefill_step_s:
            reader.refuse("prefill_step_s", "one step or more")
        return cls(
            prompt_tokens=reader.whole("prompt_tokens", 1, 10_000_000),
            prefill_step_s=prefill_step_s,
            decode_step_s=reader.numbers("decode_step_s", 1e-9, 1e6),
            prefill=_phase_from(reader.inner("prefill")),
            decode=None if reader.data.get("decode") is None else _phase_from(reader.inner("decode")),
            memory={name: reader.inner("memory").number(name) for name in _MEMORY},
            bandwidth_bytes_per_s=reader.number("bandwidth_bytes_per_s", 1),
        )


def mbu(moved_bytes: float, seconds: float, bandwidth_bytes_per_s: float) -> float:
    """``bytes / (seconds * bandwidth)``: the part of the machine's bandwidth that a pass used."""
    return moved_bytes / (seconds * bandwidth_bytes_per_s)


def predict(
    request: RunRequest,
    prompt_tokens: int,
    model: ModelSpec,
    machine: Machine,
    rehearsal: Rehearsal = AS_PREDICTED,
) -> Prediction:
    """Predict every step of a run.

    Args:
        request: what is asked for.
        prompt_tokens: of its prompt, template included.
        model: the shape.
        machine: from a calibration (``Calibration.machine``) or a data sheet.
        rehearsal: on the machine, just before the run.

    Raises:
        RequestError: the prompt and the answer do not fit the model's context.
        FormatError: the machine has no rate for the format.
    """
    cached = request.cache != "none"
    shape = RunShape(request.weights, request.kv, cached, 1, prompt_tokens, request.max_tokens)
    return predict_shape(shape, model, machine, rehearsal)


def predict_shape(
    shape: RunShape, model: ModelSpec, machine: Machine, rehearsal: Rehearsal = AS_PREDICTED
) -> Prediction:
    """Predict every step of equal requests that arrive together; see ``predict``.

    Raises:
        RequestError: the requests do not fit the model's context, or their prompts one step.
        FormatError: the machine has no rate for the format.
    """
    shape.check(model)
    followed = rehearsal.followed
    reading, writing = machine.slower(followed.prefill), machine.slower(followed.decode)
    reads = np.array(shape.pieces)
    prefill = pass_table(shape, model, reads, reads.cumsum())
    contexts = np.arange(shape.prompt_tokens + 1, shape.prompt_tokens + shape.new_tokens)
    decode = None
    if len(contexts):
        decode = pass_table(shape, model, np.ones_like(contexts) if shape.cached else contexts, contexts)
    last = shape.prompt_tokens + shape.new_tokens - 1
    return Prediction(
        prompt_tokens=shape.prompt_tokens,
        prefill_step_s=_step_s(prefill, reading),
        decode_step_s=() if decode is None else _step_s(decode, writing),
        prefill=_phase(prefill, reading, len(reads)),
        decode=None if decode is None else _phase(decode, writing, 1),
        memory={
            "weights_bytes": float(stored_bytes(model, shape.weights)),
            "kv_bytes": float(cache_bytes(model, shape.kv, shape.batch, last)) if shape.cached else 0.0,
            "activation_bytes": float(activation_bytes(prefill).max()),
        },
        bandwidth_bytes_per_s=machine.bandwidth_bytes_per_s,
    )


def pass_table(
    shape: RunShape, model: ModelSpec, new_tokens: NDArray[Any], context: NDArray[Any]
) -> Operators:
    """The operator table of passes of a run's sequences: new tokens of each, at a context of each."""
    return operators(
        model,
        batch=shape.batch,
        new_tokens=new_tokens,
        context=context,
        weights=shape.weights,
        kv=shape.kv,
    )


def _step_s(table: Operators, machine: Machine) -> tuple[float, ...]:
    return tuple(float(seconds) for seconds in step_time(table, machine))


def _phase(table: Operators, machine: Machine, passes: int) -> PhasePrediction:
    """The mean over a table's sweep, times ``passes``."""

    def whole(column: NDArray[np.float64]) -> float:
        return float(column.mean()) * passes

    by_name = table.by_name(operator_times(table, machine))
    limits = bound(table, machine)
    middle = table.flops.shape[-1] // 2
    return PhasePrediction(
        operators_s={name: whole(seconds) for name, seconds in by_name.items()},
        fixed_s=machine.step_fixed_s * passes,
        flops=whole(table.total("flops")),
        weight_bytes=whole(table.total("weight_streamed_bytes")),
        kv_bytes=whole(table.total("kv_read_bytes") + table.total("kv_write_bytes")),
        moved_bytes=whole(table.streamed_bytes.sum(axis=0)),
        limit=str(limits.limit[middle]),
        factor=min(float(limits.factor[middle]), 1e6),
    )


def _phase_from(reader: Reader) -> PhasePrediction:
    return PhasePrediction(
        operators_s=reader.number_map("operators_s", 0, 1e6),
        fixed_s=reader.number("fixed_s", 0, 10),
        flops=reader.number("flops", 0, 1e30),
        weight_bytes=reader.number("weight_bytes"),
        kv_bytes=reader.number("kv_bytes"),
        moved_bytes=reader.number("moved_bytes"),
        limit=reader.text("limit", ("memory", "compute", "overhead")),
        factor=reader.number("factor", 0, 1e6),
    )
