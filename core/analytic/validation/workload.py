"""What a published run asks of its chip: sums over the operator tables of its two kinds of pass.

A run's weights have an effective width (4.89 bits), which may mix several formats, so the table is that
of 16-bit weights and the bytes of its matrices are scaled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.parallel import ParallelPlan, device_operators, stages
from core.analytic.setting import FormatClass, Setting, heads_per_kv_head
from core.analytic.table import Operators
from core.analytic.validation.runs import PublishedRun
from core.catalog.mixers import Attention

#: Prompt tokens that llama.cpp passes through the model at once (its ubatch).
#: https://github.com/ggml-org/llama.cpp/blob/master/common/common.h
_LOCAL_CHUNK: Final = 512
#: What engines give to weights and cache, and the most sequences they take.
_MEMORY_SHARE: Final = 0.9
_MOST_SEQUENCES: Final = 2048
#: When llama.cpp fused attention by default, as a decimal year; and the versions of TensorRT-LLM before its
#: kernel for shared KV heads. Before, each query head read its KV head by itself.
#: https://github.com/ggml-org/llama.cpp/pull/15434
#: https://github.com/NVIDIA/TensorRT-LLM/blob/main/docs/source/blogs/XQA-kernel.md
_FUSED_SINCE: Final = 2025.6
_BEFORE_XQA: Final = re.compile(r"v0\.[0-6]\b")
#: Engines whose head stays in 16 bits beside quantised layers.
_WIDE_HEAD_STYLES: Final = ("cpp", "python")
_WIDE_HEAD_ENGINES: Final = ("tinychat",)


@dataclass(frozen=True, slots=True)
class PassWork:
    """One forward pass on one chip, summed by what limits it. Bytes and FLOPs; rates are not in it.

    Attributes:
        linear_bytes, linear_flops: the layers' matrices. padding_flops: FLOPs of one padded row in each.
        head_bytes, head_flops, head_padding_flops: the same of the head.
        kv_bytes, attention_flops: attention. scores: scores that are written out; 0 where fused.
        other_bytes: everything else. logit_bytes: what sampling reads.
        operators: calls of operators. exchanges: calls of collectives, with the bytes and steps of a
            ring, and the bytes of one shot.
        passes: times a chunked prompt goes through the model.
    """

    linear_bytes: float
    linear_flops: float
    padding_flops: float
    head_bytes: float
    head_flops: float
    head_padding_flops: float
    kv_bytes: float
    attention_flops: float
    scores: float
    other_bytes: float
    logit_bytes: float
    operators: float
    exchanges: float
    ring_bytes: float
    ring_steps: float
    shot_bytes: float
    passes: float


PASS_FIELDS: Final = tuple(field.name for field in fields(PassWork))


@dataclass(frozen=True, slots=True)
class Workload:
    """A run with what its passes ask for.

    Attributes:
        setting: what efficiencies depend on. batch: sequences at once, found where it was not stated.
        decode, prefill: a step in the middle of the answer, and the first pass of the whole batch.
        weight_bytes: read in one step, for rows that state a share of bandwidth.
    """

    run: PublishedRun
    setting: Setting
    batch: float
    decode: PassWork
    prefill: PassWork
    weight_bytes: float


def workload(run: PublishedRun) -> Workload:
    """Sum the operator tables of a run.

    Raises:
        ConfigError, FormatError, ScenarioError: as ``device_operators``.
    """
    batch = run.batch or _most_sequences(run)
    context = max(run.input_tokens + run.output_tokens * _share_written(run), 1.0)
    prompt = max(run.input_tokens, 1.0)
    decode = _table(run, batch, 1.0, context)
    prefill = _table(run, batch, prompt, prompt)
    work = _work(decode, run, 1.0)
    return Workload(
        run=run,
        setting=Setting(
            run.chip,
            run.engine.style,
            run.engine.name,
            format_class_of(run),
            heads_per_kv_head(run.model),
            run.year,
        ),
        batch=batch,
        decode=work,
        prefill=_work(prefill, run, _chunks(run, batch * prompt)),
        weight_bytes=work.linear_bytes + work.head_bytes,
    )


def _share_written(run: PublishedRun) -> float:
    """Part of the answer in the cache on average: half, or all of it where a static cache is read whole."""
    static = run.engine.style == "compiled" and "flex" not in run.engine_text.lower()
    return 1.0 if static else 0.5


def _chunks(run: PublishedRun, tokens: float) -> float:
    return float(np.ceil(tokens / _LOCAL_CHUNK)) if run.engine.name == "llama.cpp" else 1.0


def _table(run: PublishedRun, batch: float, new_tokens: float, context: float) -> Operators:
    plan = ParallelPlan(tp=run.devices)
    (stage,) = stages(run.model, plan)
    return device_operators(
        run.model,
        plan,
        stage,
        batch=batch,
        new_tokens=new_tokens,
        context=context,
        weights="bf16",
        kv="bf16",
    )


def _most_sequences(run: PublishedRun) -> float:
    """As many as the memory holds beside the weights, whole answers long."""
    tokens = run.input_tokens + run.output_tokens
    work = _work(_table(run, 1.0, 1.0, max(tokens, 1.0)), run, 1.0)
    room = _MEMORY_SHARE * (run.chip.capacity_bytes or 0.0) - work.linear_bytes - work.head_bytes
    return float(np.clip(room / work.kv_bytes, 1, _MOST_SEQUENCES))


def _work(table: Operators, run: PublishedRun, passes: float) -> PassWork:
    kinds, names = np.array(table.kinds), np.array(table.names)
    head = names == "lm_head"
    linear, attention = (kinds == "linear") & ~head, kinds == "attention"
    exchange, sample = kinds == "collective", kinds == "sample"
    other = ~(linear | head | attention | exchange | sample)
    layer_share, head_share = run.weight_bits / 16, _head_bits(run) / 16
    streamed = table.weight_streamed_bytes * np.where(linear, layer_share, np.where(head, head_share, 1.0))
    reads = heads_per_kv_head(run.model) if _reads_each_head(run) else 1.0
    cache = (reads * table.kv_read_bytes + table.kv_write_bytes) * (run.kv_bits / 16)
    moved = table.activation_bytes + cache + table.state_bytes
    padding = table.flops / table.tokens

    def total(column: NDArray[np.float64], rows: NDArray[np.bool_]) -> float:
        return float(column[rows].sum())

    return PassWork(
        linear_bytes=passes * total(streamed, linear) + total(moved, linear),
        linear_flops=total(table.flops, linear),
        padding_flops=passes * total(padding, linear),
        head_bytes=total(streamed + moved, head),
        head_flops=total(table.flops, head),
        head_padding_flops=total(padding, head),
        kv_bytes=total(moved, attention),
        attention_flops=total(table.flops, attention),
        scores=_scores(table, attention, run) if passes >= 1 and run.prefill else 0.0,
        other_bytes=total(moved + streamed, other),
        logit_bytes=total(moved, sample),
        operators=passes * float(table.repeats[~exchange].sum()),
        passes=passes,
        **_exchanges(table, passes),
    )


def _reads_each_head(run: PublishedRun) -> bool:
    """Whether every query head reads its KV head by itself, instead of a group together."""
    if run.engine.name == "tensorrt-llm":
        return _BEFORE_XQA.search(run.engine_text) is not None
    return run.engine.name == "llama.cpp" and run.year < _FUSED_SINCE


def _scores(table: Operators, attention: NDArray[np.bool_], run: PublishedRun) -> float:
    """Scores that an engine without fused attention writes to memory and reads back."""
    mixer = run.model.layers[0].mixer
    if run.engine.name != "llama.cpp" or not _reads_each_head(run) or not isinstance(mixer, Attention):
        return 0.0
    return float(table.flops[attention].sum()) / (4 * mixer.head_dim)


def _exchanges(table: Operators, passes: float) -> dict[str, float]:
    ring = steps = shot = calls = 0.0
    for row, collective in enumerate(table.collectives):
        if collective is None:
            continue
        repeats = float(table.repeats[row])
        calls += passes * repeats
        ring += float(table.link_bytes[row])
        steps += passes * repeats * collective.steps()
        shot += float(table.link_bytes[row]) * collective.wire_factor("one_shot") / collective.wire_factor()
    return {"exchanges": calls, "ring_bytes": ring, "ring_steps": steps, "shot_bytes": shot}


def _head_bits(run: PublishedRun) -> float:
    """Width of the head: with the layers in files quantised from end to end, 16 bits in serving formats."""
    if run.engine.style in _WIDE_HEAD_STYLES or run.engine.name in _WIDE_HEAD_ENGINES:
        return 16.0
    if run.engine.name == "exllama":
        return max(6.0, run.weight_bits)
    return run.weight_bits


def format_class_of(run: PublishedRun) -> FormatClass:
    """How a run's weights are multiplied, from their width, the engine, and what the row says."""
    text = f"{run.engine_text} {run.note}".lower()
    if run.weight_bits > 9:
        return "16"
    if run.weight_bits > 6:
        whole = "int8" in text or "eetq" in text or run.engine.style not in {"cpp", "python"}
        return "w8" if whole else "fp8"
    if "nvfp4" in text or "fp4" in text.split():
        return "fp4"
    return "packed4" if "tinygemm" in text or run.engine.style == "compiled" else "q4"
