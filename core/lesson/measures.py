"""Measured beside predicted for a lesson: lines made of one or two runs of the lab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from core.lab.calibration import Calibration
from core.lab.compare import Comparison, Ratio, compare
from core.lab.record import RunRecord
from core.lesson.amount import Amount
from core.lesson.flop_count import flop_count
from core.units import GB, MB, format_gb

_MEGA: Final = 1e6


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One quantity, predicted and measured, with the range of what was measured (p10 to p90).

    ``about`` says what only the run itself knows, for example how much was read.
    """

    predicted: Amount
    measured: Amount
    low: Amount
    high: Amount
    about: str = field(default="", kw_only=True)

    @property
    def ratio(self) -> float:
        """Measured / predicted."""
        return self.measured.value / self.predicted.value


#: A line over runs in the lesson's order; None where a run has no such quantity.
RowMaker = Callable[[Sequence[RunRecord]], MeasuredRow | None]


def _milliseconds(ratio: Ratio) -> MeasuredRow:
    seconds = (ratio.predicted_s, ratio.measured_s, ratio.low_s, ratio.high_s)
    return MeasuredRow(*(Amount(1e3 * value, "ms") for value in seconds))


def _rate(ratio: Ratio, tokens: int) -> MeasuredRow:
    """Tokens a second; the slowest time is the lowest rate."""
    seconds = (ratio.predicted_s, ratio.measured_s, ratio.high_s, max(ratio.low_s, 1e-12))
    return MeasuredRow(*(Amount(tokens / value, "tokens/s") for value in seconds))


def prompt_rate(runs: Sequence[RunRecord]) -> MeasuredRow:
    """Prompt tokens read a second: the prompt's length over TTFT."""
    return _rate(compare(runs[0]).ttft, runs[0].prediction.prompt_tokens)


def answer_rate(runs: Sequence[RunRecord]) -> MeasuredRow | None:
    """Answer tokens written a second: 1 / TPOT."""
    tpot = compare(runs[0]).tpot
    return None if tpot is None else _rate(tpot, 1)


def time_per_token(runs: Sequence[RunRecord]) -> MeasuredRow | None:
    """TPOT of one run."""
    tpot = compare(runs[0]).tpot
    return None if tpot is None else _milliseconds(tpot)


def rate_ratio(runs: Sequence[RunRecord]) -> MeasuredRow | None:
    """How many times as fast the prompt is read as the answer is written."""
    found: Comparison = compare(runs[0])
    if found.tpot is None:
        return None
    return _factor(found.tpot, found.ttft, runs[0].prediction.prompt_tokens)


def time_ratio(runs: Sequence[RunRecord]) -> MeasuredRow | None:
    """TPOT of the first run over that of the second."""
    slow, fast = compare(runs[0]).tpot, compare(runs[1]).tpot
    return None if slow is None or fast is None else _factor(slow, fast, 1)


def weights_read(runs: Sequence[RunRecord]) -> MeasuredRow | None:
    """Bytes of weights that a later step reads: by the operator table, and counted on real tensors."""
    return _counted(runs[0], "weight_bytes")


def cache_moved(runs: Sequence[RunRecord]) -> MeasuredRow | None:
    """Bytes of the KV cache that a later step reads and writes, counted both ways, as a mean."""
    return _counted(runs[0], "kv_bytes")


def memory_kept(runs: Sequence[RunRecord]) -> MeasuredRow:
    """Bytes that the engine's tensors take at their fullest: by formula, and added up."""
    predicted, measured = runs[0].prediction.total_memory_bytes / MB, runs[0].measured.peak_memory_bytes / MB
    return MeasuredRow(*(Amount(value, "MB") for value in (predicted, measured, measured, measured)))


def _counted(run: RunRecord, what: Literal["weight_bytes", "kv_bytes"]) -> MeasuredRow | None:
    """A count has no spread: what differs between steps grows with the context, and its mean is shown."""
    decode = run.prediction.decode
    if decode is None or not run.later_steps or not getattr(decode, what):
        return None
    counts = [
        step.weight_bytes if what == "weight_bytes" else step.kv_read_bytes + step.kv_write_bytes
        for step in run.later_steps
    ]
    mean = Amount(sum(counts) / len(counts) / MB, "MB")
    return MeasuredRow(Amount(getattr(decode, what) / MB, "MB"), mean, mean, mean)


def counted_flops(_: Sequence[RunRecord]) -> MeasuredRow:
    """FLOPs of one token: by the operator table, and as PyTorch's own counter saw them; kept, not run."""
    found = flop_count()
    predicted, counted = (Amount(flops / _MEGA, "MFLOP") for flops in (found.predicted, found.total))
    about = f"PyTorch {found.torch_version}, {found.date}"
    return MeasuredRow(predicted, counted, counted, counted, about=about)


def smallest_read(runs: Sequence[RunRecord]) -> MeasuredRow:
    """Reading the calibration's smallest working set, beside what memory alone would deliver."""
    return _read(runs[0].calibration, 0)


def middle_read(runs: Sequence[RunRecord]) -> MeasuredRow:
    """The same of the middle one; of two it is the larger."""
    return _read(runs[0].calibration, len(runs[0].calibration.bandwidths) // 2)


def _read(calibration: Calibration, index: int) -> MeasuredRow:
    found = calibration.bandwidths[index]
    rate = Amount(found.read_bytes_per_s / GB, "GB/s")
    memory = Amount(calibration.read_bytes_per_s / GB, "GB/s")
    about = f"{format_gb(found.working_set_bytes)}, again and again"
    return MeasuredRow(memory, rate, rate, rate, about=about)


def memory_read(runs: Sequence[RunRecord]) -> MeasuredRow:
    """Reading beyond every cache: the calibration's check, and the same check before and after the run."""
    load, calibration = runs[0].load, runs[0].calibration
    both = sorted((load.before.read_bytes_per_s, load.after.read_bytes_per_s))
    rates = (calibration.pace.read_bytes_per_s, load.bandwidth_bytes_per_s, *both)
    size = format_gb(calibration.bandwidths[-1].working_set_bytes)
    return MeasuredRow(*(Amount(rate / GB, "GB/s") for rate in rates), about=f"{size}, beside the run")


#: The operator whose matrix a page follows through a run: large, and in every model that runs here.
_MATRIX: Final = "gate_up"


def matrix_of_a_step(runs: Sequence[RunRecord]) -> MeasuredRow | None:
    """The MLP's first product of a decode step, all layers together: one row a token."""
    found = _matrix(compare(runs[0]).decode)
    return None if found is None else _milliseconds(found)


def matrix_of_a_prompt(runs: Sequence[RunRecord]) -> MeasuredRow | None:
    """The same of the prefill: as many rows as the prompt has tokens."""
    found = _matrix(compare(runs[0]).prefill)
    return None if found is None else _milliseconds(found)


def matrix_factor(runs: Sequence[RunRecord]) -> MeasuredRow | None:
    """How many times as long the prefill's product takes as a step's."""
    found = compare(runs[0])
    prompt, step = _matrix(found.prefill), _matrix(found.decode)
    return None if prompt is None or step is None else _factor(prompt, step, 1)


def _matrix(operators: Sequence[Ratio]) -> Ratio | None:
    return next((ratio for ratio in operators if ratio.name == _MATRIX), None)


def _factor(above: Ratio, below: Ratio, scale: float) -> MeasuredRow:
    return MeasuredRow(
        predicted=Amount(scale * above.predicted_s / below.predicted_s, "×"),
        measured=Amount(scale * above.measured_s / below.measured_s, "×"),
        low=Amount(scale * above.low_s / below.high_s, "×"),
        high=Amount(scale * above.high_s / max(below.low_s, 1e-12), "×"),
    )


@dataclass(frozen=True, slots=True)
class Checked:
    """Something that must hold between runs: whether it does, and a sentence."""

    holds: bool
    sentence: str


def same_text(runs: Sequence[RunRecord]) -> Checked:
    """Whether two runs wrote the same text, token for token."""
    first, second = runs[0], runs[1]
    tokens = (first.output_tokens, second.output_tokens)
    if first.text == second.text and tokens[0] == tokens[1]:
        return Checked(True, f"Both runs wrote the same {tokens[0]:,} tokens.")
    same = _common_length(first.text, second.text)
    return Checked(
        False,
        f"The runs must write the same text, and they differ after {same:,} characters. The two ways round "
        "numbers differently; a near tie between two tokens then falls the other way. Run again in fp32.",
    )


def _common_length(first: str, second: str) -> int:
    return next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(map(len, (first, second))),
    )


#: Measures and checks that a lesson file may name, and how many runs each takes.
MEASURES: Final[dict[str, tuple[RowMaker, int]]] = {
    "prompt_rate": (prompt_rate, 1),
    "answer_rate": (answer_rate, 1),
    "time_per_token": (time_per_token, 1),
    "rate_ratio": (rate_ratio, 1),
    "time_ratio": (time_ratio, 2),
    "counted_flops": (counted_flops, 1),
    "weights_read": (weights_read, 1),
    "smallest_read": (smallest_read, 1),
    "middle_read": (middle_read, 1),
    "memory_read": (memory_read, 1),
    "matrix_of_a_step": (matrix_of_a_step, 1),
    "matrix_of_a_prompt": (matrix_of_a_prompt, 1),
    "matrix_factor": (matrix_factor, 1),
    "cache_moved": (cache_moved, 1),
    "memory_kept": (memory_kept, 1),
}
CHECKS: Final[dict[str, tuple[Callable[[Sequence[RunRecord]], Checked], int]]] = {"same_text": (same_text, 2)}
