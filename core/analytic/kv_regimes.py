"""How much memory an engine sets aside for a cache, beside what the tokens themselves need.

Three sizes go by the name "KV cache". Resident is what the tokens leave (``kv_cache.cache_bytes``). A
paged engine rounds it up to blocks, and admits a request only where its worst case has room. An engine
with one contiguous buffer reserves the worst case of its whole context at the start. All functions are
per model and vectorise over batch and context; layers that keep a state add it unrounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.kv_cache import cache_bytes, state_bytes, token_bytes
from core.analytic.params import layer_kinds
from core.catalog.mixers import CompressedAttention
from core.catalog.model import Mixer, ModelSpec
from core.units import Number

#: Tokens of a block: https://docs.vllm.ai/en/latest/configuration/engine_args/ (block-size), 2026-11-29
BLOCK_TOKENS: Final = 16
#: Cells of llama.cpp's cache are padded to a multiple of this:
#: https://github.com/ggml-org/llama.cpp/blob/master/src/llama-kv-cache-iswa.cpp, 2026-11-29
CELL_PADDING: Final = 256


@dataclass(frozen=True, slots=True)
class PagedEngine:
    """A vLLM-like engine.

    Attributes:
        block_tokens: tokens of a block. batched_tokens: the most that go through the model at once.
        max_context: the longest sequence it admits; None is the model's own.
        window_aware: layers with a window keep only what they can still look at (the hybrid manager).
    """

    block_tokens: int = BLOCK_TOKENS
    batched_tokens: int = 8192
    max_context: int | None = None
    window_aware: bool = True


#: vLLM as it comes.
PAGED: Final = PagedEngine()


def blocks(tokens: Number, block_tokens: int = BLOCK_TOKENS) -> NDArray[np.float64]:
    """Blocks that hold so many tokens: ``ceil(tokens / block)``.

    >>> float(blocks(1000))
    63.0
    """
    return np.asarray(np.ceil(np.asarray(tokens, np.float64) / block_tokens))


def paged_bytes(
    model: ModelSpec, kv: str, batch: Number, context: Number, engine: PagedEngine = PAGED
) -> NDArray[np.float64]:
    """What a paged engine holds for ``batch`` sequences of ``context`` tokens: whole blocks in each layer.

    A layer with a window holds the blocks that reach into it. Ignored: blocks that requests share.

    >>> from core.catalog.models import model
    >>> float(paged_bytes(model("llama-3.1-8b"), "bf16", batch=1, context=1000))
    132120576.0
    """
    return _over_layers(model, kv, batch, np.asarray(context, np.float64), _held(engine))


def _held(engine: PagedEngine) -> Callable[[Mixer, NDArray[np.float64]], NDArray[np.float64]]:
    def slots(mixer: Mixer, tokens: NDArray[np.float64]) -> NDArray[np.float64]:
        last = blocks(tokens, engine.block_tokens)
        return np.asarray((last - _first_block(mixer, tokens, engine)) * engine.block_tokens)

    return slots


def _first_block(mixer: Mixer, tokens: NDArray[np.float64], engine: PagedEngine) -> NDArray[np.float64]:
    """The first block that a layer can still look into; 0 without a window."""
    if mixer.span is None or not engine.window_aware:
        return np.zeros_like(tokens)
    return np.asarray(np.floor(np.maximum(tokens - mixer.span, 0) / engine.block_tokens))


def admitted_tokens(mixer: Mixer, context: Number, engine: PagedEngine = PAGED) -> NDArray[np.float64]:
    """The most tokens of one sequence that a layer may have to hold at once.

    All of them without a window. With a window w and chunks of n tokens in flight,
    ``min(w - 1 + n, context)``: the window before the chunk, and the chunk.

    >>> from core.catalog.model import Attention
    >>> float(admitted_tokens(Attention(64, 8, 64, window=128), 131_072))
    8319.0
    """
    tokens = np.asarray(context, np.float64)
    if mixer.span is None or not engine.window_aware:
        return tokens
    return np.asarray(np.minimum(mixer.span - 1 + engine.batched_tokens, tokens))


def admitted_blocks(mixer: Mixer, context: Number, engine: PagedEngine = PAGED) -> NDArray[np.float64]:
    """Blocks that a request must find free in a layer; one more with a window, which may start in mid-block.

    >>> from core.catalog.model import Attention
    >>> float(admitted_blocks(Attention(64, 8, 64, window=128), 8192))
    513.0
    """
    windowed = mixer.span is not None and engine.window_aware
    return blocks(admitted_tokens(mixer, context, engine), engine.block_tokens) + float(windowed)


def paged_worst_bytes(
    model: ModelSpec, kv: str, batch: Number, engine: PagedEngine = PAGED
) -> NDArray[np.float64]:
    """What ``batch`` requests of the longest length reserve in a paged engine in the worst case.

    >>> from core.catalog.models import model
    >>> float(paged_worst_bytes(model("llama-3.1-8b"), "bf16", 1, PagedEngine(max_context=8192)))
    1073741824.0
    """
    longest = float(engine.max_context or model.max_context)

    def reserved(mixer: Mixer, tokens: NDArray[np.float64]) -> NDArray[np.float64]:
        return admitted_blocks(mixer, tokens, engine) * engine.block_tokens

    return _over_layers(model, kv, batch, np.asarray(longest), reserved)


def contiguous_bytes(
    model: ModelSpec, kv: str, sequences: int, context: Number, micro_batch: int = 512
) -> NDArray[np.float64]:
    """What a llama.cpp-like engine reserves when it starts, for ``context`` cells over all sequences.

    A layer without a window gets all cells; one with a window w gets ``w * sequences + micro_batch``, at
    most all, rounded up to a multiple of 256. Everything is reserved, whatever is used.

    >>> from core.catalog.models import model
    >>> float(contiguous_bytes(model("llama-3.1-8b"), "fp16", 1, 32_768))
    4294967296.0
    """

    def reserved(mixer: Mixer, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        if mixer.span is None:
            return cells
        return np.minimum(_padded(np.asarray(mixer.span * sequences + micro_batch, np.float64)), cells)

    held = _over_layers(model, kv, 1, _padded(np.asarray(context, np.float64)), reserved)
    # States are kept for each sequence; llama.cpp keeps their convolution part in fp32 as well.
    states = sequences * state_bytes(model, "fp32", "fp32") - state_bytes(model)
    return np.asarray(held + states)


def _padded(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.ceil(cells / CELL_PADDING) * CELL_PADDING)


def _over_layers(
    model: ModelSpec,
    kv: str,
    batch: Number,
    tokens: NDArray[np.float64],
    slots: Callable[[Mixer, NDArray[np.float64]], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Bytes of so many token slots in each layer, compressed entries and states with them, times a batch."""
    total = np.asarray(float(state_bytes(model)))
    for layer, repeats in layer_kinds(model):
        mixer = layer.mixer
        if mixer is None or not mixer.cache_vectors:
            continue
        held = slots(mixer, tokens)
        if isinstance(mixer, CompressedAttention) and mixer.ratio:
            held = held + np.floor(tokens / mixer.ratio)
        total = total + repeats * token_bytes(mixer, kv) * held
    return np.asarray(np.asarray(batch, np.float64) * total)


@dataclass(frozen=True, slots=True)
class CacheSizes:
    """One load in every regime, in bytes; states are in all of them.

    Attributes:
        resident: what the tokens leave. paged: in whole blocks. paged_worst: what a paged engine must find
            free to admit them. contiguous: what an engine with one buffer for this load reserves.
    """

    resident: float
    paged: float
    paged_worst: float
    contiguous: float


def cache_sizes(model: ModelSpec, kv: str, batch: int, context: int) -> CacheSizes:
    """The cache of ``batch`` sequences that grow to ``context`` tokens, regime by regime.

    >>> from core.catalog.models import model
    >>> found = cache_sizes(model("llama-3.1-8b"), "bf16", batch=2, context=1000)
    >>> found.resident, found.paged, found.contiguous
    (262144000.0, 264241152.0, 268435456.0)
    """
    engine = PagedEngine(max_context=context)
    return CacheSizes(
        resident=float(cache_bytes(model, kv, batch, context)) + batch * state_bytes(model),
        paged=float(paged_bytes(model, kv, batch, context, engine)),
        paged_worst=float(paged_worst_bytes(model, kv, batch, engine)),
        contiguous=float(contiguous_bytes(model, kv, batch, batch * context)),
    )


# --- Shared beginnings ----------------------------------------------------------------------------


def reused_tokens(prompt: Number, shared: Number, block_tokens: int = BLOCK_TOKENS) -> NDArray[np.float64]:
    """Tokens of a prompt that need not be computed, since another began with the same ``shared`` ones.

    Whole blocks only, and never the last token, whose logits are wanted: ``floor(min(shared,
    prompt - 1) / block) * block``.

    >>> float(reused_tokens(4000, 500)), float(reused_tokens(512, 512))
    (496.0, 496.0)
    """
    known = np.minimum(np.asarray(shared, np.float64), np.asarray(prompt, np.float64) - 1)
    return np.asarray(np.floor(known / block_tokens) * block_tokens)


def sharing_bytes(
    model: ModelSpec,
    kv: str,
    *,
    batch: Number,
    context: Number,
    shared: Number,
    engine: PagedEngine = PAGED,
) -> NDArray[np.float64]:
    """What a paged engine holds for a batch whose sequences begin with the same ``shared`` tokens.

    Their whole blocks are held once; in a layer with a window only those that it still reaches into.

    >>> from core.catalog.models import model
    >>> load = {"batch": 8, "context": 4096}
    >>> alone, together = (
    ...     float(sharing_bytes(model("llama-3.1-8b"), "bf16", shared=n, **load)) for n in (0, 4000))
    >>> round(alone / together, 2)
    6.87
    """
    tokens = np.asarray(context, np.float64)
    whole = np.floor(np.minimum(np.asarray(shared, np.float64), tokens) / engine.block_tokens)

    def common(mixer: Mixer, ends: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.maximum(whole - _first_block(mixer, ends, engine), 0) * engine.block_tokens)

    once = _over_layers(model, kv, 1, tokens, common) - state_bytes(model)
    others = np.asarray(batch, np.float64) - 1
    return np.asarray(paged_bytes(model, kv, batch, context, engine) - others * once)


# --- What is left for a cache ---------------------------------------------------------------------


def budget_of_total(total_bytes: Number, fraction: float, other_bytes: Number) -> NDArray[np.float64]:
    """What vLLM and SGLang give to the cache: ``fraction * total - everything else``, never below 0.

    >>> round(float(budget_of_total(179, 0.92, 152)), 2)
    12.68
    """
    left = fraction * np.asarray(total_bytes, np.float64) - other_bytes
    return np.asarray(np.maximum(left, 0.0))


def budget_of_rest(total_bytes: Number, fraction: float, other_bytes: Number) -> NDArray[np.float64]:
    """What TensorRT-LLM gives to the cache: ``fraction * (total - everything else)``, never below 0.

    >>> round(float(budget_of_rest(179, 0.92, 152)), 2)
    24.84
    """
    left = np.asarray(total_bytes, np.float64) - other_bytes
    return np.asarray(fraction * np.maximum(left, 0.0))
