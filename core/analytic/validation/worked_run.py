"""The arithmetic of one published run: what its passes ask for, at which rates, and what follows.

It is the sum that the fit uses (``terms``), written out for one row with the quantities of the fit that
has not seen the row's source. Each line is Python, so that a reader can run it; a test does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from core.analytic.validation.judged import JudgedRun
from core.analytic.validation.terms import (
    FIXED,
    OPERATORS_PER_LAYER,
    OVERLAP,
    QUEUED_PREFILLS,
    Array,
    Columns,
    columns,
    metric,
    parts_s,
    times_s,
)
from core.analytic.validation.workload import workload
from core.units import GB, format_gb, format_si, significant

#: What a pass is called in the lines, and what stands before the names of its parts.
_STEP: Final = ("step", "")
_FIRST: Final = ("first", "first_")
#: Part of ``terms.parts_s`` -> its name in the lines, where that is another.
_NAMES: Final = {"linear": "matrices", "other": "rest", "link": "links", "pass": "whole"}
#: Metric -> its formula, the unit of what comes out, and whether it needs a step and a first pass.
_METRICS: Final[Mapping[str, tuple[str, bool, bool]]] = {
    "decode_tok_s_per_user": ("1 / step", True, False),
    "tpot_ms": ("1000 * tpot", True, False),
    "mbu": ("weight_bytes / bandwidth / step", True, False),
    "output_tok_s_total": ("batch * output / (ttft + (output - 1) * tpot)", True, True),
    "output_tok_s_per_gpu": ("batch * output / (ttft + (output - 1) * tpot) / chips", True, True),
    "requests_per_s": ("batch / (ttft + (output - 1) * tpot)", True, True),
    "prefill_tok_s": ("batch * input / first", False, True),
    "ttft_ms": ("1000 * ttft", False, True),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the arithmetic.

    Attributes:
        symbol: its name, also in Python. meaning: in words. formula: Python, of numbers and earlier symbols.
        value: what it gives. unit: "s", or what is counted; empty where the meaning says it.
    """

    symbol: str
    meaning: str
    formula: str
    value: float
    unit: str = "s"


@dataclass(frozen=True, slots=True)
class WorkedRun:
    """One row's prediction, written out.

    Attributes:
        judged: the row. lines: in order, each of numbers and of those before it.
        formula: the metric of the last of them. predicted: the metric.
    """

    judged: JudgedRun
    lines: tuple[Line, ...]
    formula: str
    predicted: float


def work_out(judged: JudgedRun) -> WorkedRun:
    """Write one row's prediction out.

    >>> from core.analytic.validation.judged import judged_runs
    >>> row = judged_runs()[0]
    >>> abs(work_out(row).predicted / row.predicted - 1) < 1e-3
    True
    """
    at = columns([workload(judged.run)])
    now = {name: np.array([number]) for name, number in judged.quantities.items()}
    times = times_s(at, now)
    formula, steps, first = _METRICS[judged.run.metric]
    busy = bool(at.serving[0] and at.batch[0] > 1)
    lines = _conditions(judged, at, formula)
    if first or (busy and "tpot" in formula):
        lines += _pass_lines(at, now, at.prefill, _FIRST, times)
    if steps:
        lines += _pass_lines(at, now, at.decode, _STEP, times)
    lines += _request_lines(at, now, formula, times, busy=busy)
    return WorkedRun(judged, tuple(lines), formula, float(metric(at, times)[0]))


def program(worked: WorkedRun) -> str:
    """Python that prints the metric, needing nothing else."""
    lines = [f"{line.symbol} = {line.formula}  # {line.meaning}" for line in worked.lines]
    return "\n".join([*lines, f"print({worked.formula})"])


def _conditions(judged: JudgedRun, at: Columns, formula: str) -> list[Line]:
    """Numbers of the row that the last formulas need."""
    fits = "; as many as fit beside the weights" if judged.run.batch is None else ""
    known = (
        ("batch", f"sequences at once{fits}", at.batch, ""),
        ("input", "tokens of each prompt", at.input_tokens, ""),
        ("output", "tokens of each answer", at.output_tokens, ""),
        ("chips", "chips that share the model", at.devices, ""),
        ("weight_bytes", "bytes of weights that a step reads, on one chip", at.weight_bytes, "B"),
        ("bandwidth", "bytes a second by the data sheet", at.bandwidth, "B/s"),
    )
    served = at.serving[0] and at.batch[0] > 1
    needed = formula + (" batch output" if served else "")
    return [
        Line(symbol, meaning, f"{float(value[0]):.9g}", float(value[0]), unit)
        for symbol, meaning, value, unit in known
        if symbol in needed.replace("(", " ").replace(")", " ").split()
    ]


# --- Passes ---------------------------------------------------------------------------------------


def _pass_lines(
    at: Columns,
    now: Mapping[str, Array],
    work: Mapping[str, Array],
    called: tuple[str, str],
    times: Mapping[str, Array],
) -> list[Line]:
    """A pass: a line for each part that takes time, and their sum."""
    name, before = called
    taken = {part: float(value[0]) for part, value in parts_s(at, now, work).items()}
    lines = [
        Line(before + _NAMES.get(part, part), *_part(part, at, now, work), seconds)
        for part, seconds in taken.items()
        if seconds > 0
    ]
    busy, fixed = (
        " + ".join(
            before + _NAMES.get(part, part)
            for part, seconds in taken.items()
            if seconds > 0 and (part in FIXED) == inside
        )
        for inside in (False, True)
    )
    formula = f"{busy} + {fixed}"
    meaning = "a decode step" if called is _STEP else "the first pass, over the prompts"
    if at.eager[0]:
        formula = f"(({busy}) ** {OVERLAP:g} + ({fixed}) ** {OVERLAP:g}) ** (1 / {OVERLAP:g})"
        meaning += "; launches overlap with the work, so it takes about the longer of the two"
    return [*lines, Line(name, meaning, formula, float(times[name][0]))]


def _part(part: str, at: Columns, now: Mapping[str, Array], work: Mapping[str, Array]) -> tuple[str, str]:
    """What a part is in words, and its seconds as Python."""
    if part in {"linear", "head", "attention"}:
        return _longer(part, at, now, work)
    it = {name: float(value[0]) for name, value in (*work.items(), *now.items())}
    if part == "link":
        return _links(at, it)
    if part in FIXED:
        return _fixed(part, it)
    if part == "sampling":
        rate = it["sampling_gb_per_s"] * GB
        words = f"choice of tokens: {format_gb(it['logit_bytes'])} of scores at {format_gb(rate)}/s"
        return words, f"{it['logit_bytes']:.9g} / {rate:.9g}"
    bandwidth = float(at.bandwidth[0])
    if part == "scores":
        size = it["score_bytes"] * it["scores"]
        return _moved("scores of attention, written and read", size, it["kv_bandwidth"], bandwidth)
    return _moved("norms, embedding and the rest", it["other_bytes"], it["weight_bandwidth"], bandwidth)


def _fixed(part: str, it: Mapping[str, float]) -> tuple[str, str]:
    """Costs that do not grow with bytes or FLOPs."""
    if part == "layers":
        layers, each_us = it["operators"] / OPERATORS_PER_LAYER, it["layer_us"]
        what = f"{significant(layers)} times {OPERATORS_PER_LAYER} operators"
        return f"fixed costs: {what}, {significant(each_us)} µs each", f"{layers:.9g} * {each_us:.9g} * 1e-6"
    passes, each_us = it["passes"], it["step_us"]
    what = "one pass" if passes == 1 else f"{significant(passes)} passes"
    return f"fixed cost of {what}, {significant(each_us)} µs each", f"{passes:.9g} * {each_us:.9g} * 1e-6"


def _longer(part: str, at: Columns, now: Mapping[str, Array], work: Mapping[str, Array]) -> tuple[str, str]:
    """The longer of reading and multiplying."""
    it = {name: float(value[0]) for name, value in (*work.items(), *now.items())}
    tile = it["tile_tokens"] * float(at.pads[0])
    peak = float((at.peak if part == "linear" else at.wide_peak)[0])
    if part == "attention":
        words, size, flops = "attention over the cache", it["kv_bytes"], it["attention_flops"]
        share, compute = it["kv_bandwidth"], it["attention_compute"] * it["compute"]
    else:
        padding = it["padding_flops" if part == "linear" else "head_padding_flops"]
        words = "matrices of the layers" if part == "linear" else "output head"
        size, flops = it[f"{part}_bytes"], it[f"{part}_flops"] + tile * padding
        share, compute = it["weight_bandwidth"], it["compute"]
    bandwidth = float(at.bandwidth[0])
    reading, multiplying = size / (share * bandwidth), flops / (compute * peak)
    if reading >= multiplying:
        return _moved(words, size, share, bandwidth)
    rate = f"{compute:.0%} of {format_si(peak)}FLOP/s"
    return f"{words}: {format_si(flops)}FLOP at {rate}", f"{flops:.9g} / ({compute:.9g} * {peak:.9g})"


def _moved(words: str, size: float, share: float, bandwidth: float) -> tuple[str, str]:
    rate = f"{share:.0%} of {format_gb(bandwidth)}/s"
    return f"{words}: {format_gb(size)} at {rate}", f"{size:.9g} / ({share:.9g} * {bandwidth:.9g})"


def _links(at: Columns, it: Mapping[str, float]) -> tuple[str, str]:
    """Exchanges between chips: a fixed cost each, and the faster of a ring and one shot."""
    rate, latency = it["link_bandwidth"] * float(at.link[0]), float(at.link_latency_s[0])
    count, each = significant(it["exchanges"]), significant(it["collective_us"])
    share = f"{it['link_bandwidth']:.0%} of {format_gb(float(at.link[0]))}/s"
    words = f"{count} exchanges between chips, {each} µs each, and their bytes at {share}"
    ring = f"{it['ring_steps']:.9g} * {latency:.9g} + {it['ring_bytes']:.9g} / {rate:.9g}"
    shot = f"{it['exchanges']:.9g} * {latency:.9g} + {it['shot_bytes']:.9g} / {rate:.9g}"
    return words, f"{it['exchanges']:.9g} * {it['collective_us']:.9g} * 1e-6 + min({ring}, {shot})"


# --- Requests -------------------------------------------------------------------------------------


def _request_lines(
    at: Columns, now: Mapping[str, Array], formula: str, times: Mapping[str, Array], *, busy: bool
) -> list[Line]:
    """TTFT and TPOT, where the metric needs them."""
    lines = []
    if "ttft" in formula:
        over_http = bool(at.answers_over_http[0])
        own = f"first / batch * {QUEUED_PREFILLS:g}" if busy else "first"
        added = f" + {float(now['request_ms'][0]):.9g} * 1e-3" if over_http else ""
        meaning = "time to the first token"
        meaning += "; a busy server reads half of another prompt before it" if busy else ""
        meaning += "; the server adds its own" if over_http else ""
        lines.append(Line("ttft", meaning, own + added, float(times["ttft"][0])))
    if "tpot" in formula:
        others = " + first / batch * (batch - 1) / output" if busy else ""
        meaning = "time of each later token" + ("; prompts of others come between" if busy else "")
        lines.append(Line("tpot", meaning, "step" + others, float(times["tpot"][0])))
    return lines
