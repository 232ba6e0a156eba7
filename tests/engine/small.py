"""Small random models, made in milliseconds: what the equivalence tests run on."""

import math
import zlib
from typing import Any

import torch

from core.catalog.hf_config import read_config
from core.catalog.model import ModelSpec
from core.engine.engine import CacheKind, Engine
from core.engine.files.checkpoint import Checkpoint, expected_shapes
from core.engine.files.text import ByteText
from core.engine.files.weight import Weight
from core.engine.records import Request
from core.engine.sampling import GREEDY, Sampling
from tests.engine.forward import random_ids

SIZES: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 96,
    "vocab_size": 256,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
}
WINDOW: dict[str, Any] = {"model_type": "mistral", "sliding_window": 6}


class SmallWeights:
    """Random weights by name, with a head so large that a distribution over the tokens has peaks."""

    def __init__(self, spec: ModelSpec) -> None:
        self._shapes = expected_shapes(spec)

    def weight(self, name: str) -> Weight:
        shape = self._shapes[name]
        if len(shape) == 1:
            return Weight(torch.ones(shape))
        generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        size = 4 if name == "lm_head.weight" else 1
        return Weight(torch.randn(shape, generator=generator) * size / math.sqrt(shape[1]))


def small_spec(**changes: object) -> ModelSpec:
    return read_config({**SIZES, **changes})


def small_engine(
    cache: CacheKind = "contiguous",
    kv: str = "fp32",
    page_tokens: int = 4,
    weights: str = "fp32",
    **changes: object,
) -> Engine:
    spec = small_spec(**changes)
    checkpoint = Checkpoint(spec, SmallWeights(spec), ByteText(spec.vocab_size), frozenset())
    return Engine(
        checkpoint, weights=weights, kv=kv, cache=cache, device=torch.device("cpu"), page_tokens=page_tokens
    )


def requests(lengths: list[tuple[int, int]], sampling: Sampling = GREEDY) -> list[Request]:
    """Prompts of random tokens: (prompt tokens, new tokens) of each."""
    return [
        Request(random_ids(prompt, seed=index), new, Sampling(**_seeded(sampling, index)))
        for index, (prompt, new) in enumerate(lengths)
    ]


def _seeded(sampling: Sampling, index: int) -> dict[str, Any]:
    return {
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "seed": sampling.seed + index,
    }
