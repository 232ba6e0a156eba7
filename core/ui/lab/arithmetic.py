"""The arithmetic behind a prediction, laid open: five worked numbers with today's values.

The formulas are those of ``core.analytic.latency`` and ``core.lab.predict``; here they are only
written down with their inputs. A test runs every program this module writes and holds its result
against the prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from core.analytic.machine import Machine
from core.analytic.operators import operators
from core.analytic.step_record import PREFILL_TOKENS
from core.analytic.table import Operators
from core.catalog.model import ModelSpec
from core.lab.predict import Prediction
from core.lab.rehearsal import AS_PREDICTED, Rehearsal
from core.lab.request import RunRequest
from core.ui.pass_arithmetic import Origin, Passes, pass_number
from core.ui.worked_number import Input, WorkedNumber
from core.units import format_gb, format_gib, format_seconds, significant

_OVERLAP: Final = "Left out: overlap of neighbouring operators."


@dataclass(frozen=True, slots=True)
class Case:
    """What is predicted: a request for a model on a machine, and the prediction for it.

    Attributes:
        pace: at which pace of the machine, in words; empty for that of its calibration.
        rehearsal: on the machine, just before the run.
    """

    request: RunRequest
    model: ModelSpec
    machine: Machine
    prediction: Prediction
    pace: str = ""
    rehearsal: Rehearsal = AS_PREDICTED

    def factor_of(self, phase: str) -> float:
        """How many times as long a phase is predicted to take for its rehearsal."""
        followed = self.rehearsal.followed
        return followed.decode if phase == "decode" else followed.prefill

    @property
    def middle_context(self) -> int:
        """Tokens that the middle decode step of the answer looks at."""
        return self.prediction.prompt_tokens + max(self.request.max_tokens // 2, 1)

    def passes(self, phase: str) -> list[Operators]:
        """The operator tables of the prefill's passes, or of the middle decode step alone."""
        if phase == "decode":
            new = 1 if self.request.cache != "none" else self.middle_context
            return [self._table(new, self.middle_context)]
        ends = [PREFILL_TOKENS * (piece + 1) for piece in range(len(self.prediction.prefill_step_s) - 1)]
        ends.append(self.prediction.prompt_tokens)
        return [self._table(end - start, end) for start, end in pairwise([0, *ends])]

    def _table(self, new_tokens: int, context: int) -> Operators:
        return operators(
            self.model,
            batch=1,
            new_tokens=new_tokens,
            context=context,
            weights=self.request.weights,
            kv=self.request.kv,
        )


def numbers_of(case: Case) -> tuple[str, ...]:
    """What can be worked out: TTFT and memory, and the rest where there is more than one token."""
    one_token = case.prediction.tpot_s is None
    return ("TTFT", "memory") if one_token else tuple(_WORKED)


def worked_number(case: Case, name: str) -> WorkedNumber:
    """Work one of ``numbers_of`` out."""
    return _WORKED[name](case)


def _ttft(case: Case) -> WorkedNumber:
    tokens, passes = case.prediction.prompt_tokens, len(case.prediction.prefill_step_s)
    how = "in one pass" if passes == 1 else f"in {passes} passes"
    what = f"reading {tokens:,} prompt tokens {how}"
    return pass_number("TTFT", _passes(case, "prefill", what), _OVERLAP)


def _tpot(case: Case) -> WorkedNumber:
    new = "1 new token" if case.request.cache != "none" else f"all {case.middle_context:,} tokens again"
    what = f"{new} at context {case.middle_context:,}, the middle of the answer"
    note = f"TPOT is the mean over the answer; this is its middle step, a little off. {_OVERLAP}"
    return pass_number("TPOT", _passes(case, "decode", what), note)


def _passes(case: Case, phase: str, what: str) -> Passes:
    origin = Origin(_origin(case) + _rehearsed(case, phase))
    machine = case.machine.slower(case.factor_of(phase))
    return Passes(what, case.passes(phase), machine, rates=origin, costs=origin)


def _origin(case: Case) -> str:
    if case.machine.origin == "measured":
        when = f"calibrated here, {case.machine.measured_at[:16].replace('T', ' ')} UTC"
        return f"{when}, at {case.pace}" if case.pace else when
    return f"data sheet of {case.machine.name}"


def _rehearsed(case: Case, phase: str) -> str:
    words = f"{case.factor_of(phase):.2f}"
    return "" if words == "1.00" else f", all times × {words} for its rehearsal"


def _rate(case: Case) -> WorkedNumber:
    tpot_s = case.prediction.tpot_s or 0.0
    return WorkedNumber(
        name="tokens/s",
        formula="tokens/s = 1 / TPOT",
        substituted=f"1 / {format_seconds(tpot_s)}",
        result=f"{significant(1 / tpot_s)} tokens/s",
        inputs=(Input("TPOT", "time per token after the first", format_seconds(tpot_s), "the number above"),),
        python=f'tpot_s = {tpot_s:.9g}\ntokens_per_s = 1 / tpot_s\nprint(f"{{tokens_per_s:.3g}} tokens/s")',
        note="One visitor, one answer at a time. TTFT is not in it.",
    )


def _mbu(case: Case) -> WorkedNumber:
    prediction, decode = case.prediction, case.prediction.decode
    tpot_s = prediction.tpot_s or 0.0
    weights, kv = (decode.weight_bytes, decode.kv_bytes) if decode else (0.0, 0.0)
    ceiling = prediction.bandwidth_bytes_per_s
    return WorkedNumber(
        name="MBU",
        formula="MBU = ( weights read + cache traffic ) / ( TPOT × bandwidth )",
        substituted=f"( {format_gb(weights)} + {format_gb(kv)} ) / "
        f"( {format_seconds(tpot_s)} × {format_gb(ceiling)}/s )",
        result=f"{prediction.mbu or 0:.0%} of what the memory can deliver",
        inputs=(
            Input("weights read", "parameter bytes of one decode step", format_gb(weights), "operator table"),
            Input("cache traffic", "keys and values read and written", format_gb(kv), "operator table"),
            Input("TPOT", "time per token after the first", format_seconds(tpot_s), "the number above"),
            Input(
                "bandwidth",
                "bytes per second of plain reading",
                f"{format_gb(ceiling)}/s",
                "the better of the checks before and after this run" if case.pace else _origin(case),
            ),
        ),
        python=_program(
            {"weight_bytes": weights, "kv_bytes": kv, "tpot_s": tpot_s, "bandwidth_bytes_per_s": ceiling},
            "mbu = (weight_bytes + kv_bytes) / (tpot_s * bandwidth_bytes_per_s)",
            'print(f"{mbu:.0%}")',
        ),
        note="Near 100 % the answer waits for memory alone; far below, calls or arithmetic cost more.",
    )


def _memory(case: Case) -> WorkedNumber:
    parts = case.prediction.memory
    weights, kv, activations = (parts[f"{name}_bytes"] for name in ("weights", "kv", "activation"))
    return WorkedNumber(
        name="memory",
        formula="memory = weights + KV cache + activations",
        substituted=" + ".join(format_gib(value) for value in (weights, kv, activations)),
        result=format_gib(weights + kv + activations),
        inputs=(
            Input(
                "weights",
                "all parameters in their format, scales included",
                format_gib(weights),
                "operator table",
            ),
            Input("KV cache", "keys and values of every token at the end", format_gib(kv), "operator table"),
            Input(
                "activations", "the largest tensors of one pass", format_gib(activations), "operator table"
            ),
        ),
        python=_program(
            {"weights_bytes": weights, "kv_bytes": kv, "activation_bytes": activations},
            "memory_bytes = weights_bytes + kv_bytes + activation_bytes",
            'print(f"{memory_bytes / 2**20:.3g} MiB")',
        ),
        note="The engine's own tensors; the process needs more for its code and libraries.",
    )


def _program(values: dict[str, float], line: str, show: str) -> str:
    return "\n".join([*(f"{name} = {value:.9g}" for name, value in values.items()), line, show])


_WORKED: Final[dict[str, Callable[[Case], WorkedNumber]]] = {
    "TTFT": _ttft,
    "TPOT": _tpot,
    "tokens/s": _rate,
    "MBU": _mbu,
    "memory": _memory,
}
