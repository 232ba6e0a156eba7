"""Small models of every kind, made by hand: each has one thing that the others lack."""

from dataclasses import replace
from itertools import chain, repeat

from core.catalog.model import (
    Attention,
    CompressedAttention,
    DenseMLP,
    Indexer,
    LatentAttention,
    Layer,
    LinearAttention,
    Mamba,
    Mamba2,
    ModelSpec,
    MoE,
    ShortConvolution,
)
from core.catalog.models import model

HIDDEN = 64
GQA = Attention(num_heads=8, num_kv_heads=4, head_dim=16)
MLP = DenseMLP(96)
EXPERTS = MoE(num_experts=16, experts_per_token=4, expert=DenseMLP(32), shared=DenseMLP(32), router_values=16)
MLA = LatentAttention(num_heads=8, query_rank=24, kv_rank=32, nope_dim=16, rope_dim=8, value_dim=16)


def shape(*layers: Layer, vocab_size: int = 256, tied: bool = False) -> ModelSpec:
    """A model of these layers; what else it needs is a catalogue model's."""
    return replace(
        model("llama-3.1-8b"),
        id="custom",
        name="small",
        hidden_size=HIDDEN,
        vocab_size=vocab_size,
        layers=layers,
        tied_embeddings=tied,
    )


def stacked(*layers: Layer, times: int) -> ModelSpec:
    """The same group of layers so many times."""
    return shape(*chain.from_iterable(repeat(layers, times)))


SHAPES = {
    "dense": stacked(Layer(GQA, MLP), times=4),
    "tied": shape(*[Layer(GQA, MLP)] * 4, tied=True),
    "windows": stacked(Layer(replace(GQA, window=7), MLP), Layer(GQA, MLP), times=2),
    "chunks": stacked(Layer(replace(GQA, chunk=5), MLP), Layer(replace(GQA, rotary_dim=0), MLP), times=2),
    "wide keys": stacked(Layer(replace(GQA, head_dim=24, value_dim=16, sinks=True), MLP), times=4),
    "shared cache": stacked(
        Layer(GQA, MLP), Layer(replace(GQA, kv_projection="none", keeps_cache=False), MLP), times=2
    ),
    "parallel block": stacked(Layer(GQA, DenseMLP(96, gated=False), ("norm",), parallel=True), times=4),
    "latent experts": shape(Layer(MLA, MLP), *[Layer(MLA, EXPERTS)] * 3),
    "sparse latent": stacked(Layer(replace(MLA, indexer=Indexer(4, 16, 5)), EXPERTS), times=4),
    "compressed": stacked(
        Layer(CompressedAttention(8, 16, 24, 8, 4, 16, 6, 4, indexer=Indexer(4, 16, 3)), EXPERTS), times=4
    ),
    "mamba": stacked(Layer(Mamba(128, 4, 4, 4), None, ("norm",)), times=4),
    "mamba2 hybrid": stacked(Layer(Mamba2(8, 16, 8, 4, 4), None, ("norm",)), Layer(GQA, EXPERTS), times=2),
    "delta net": stacked(
        Layer(LinearAttention(4, 8, 16, 16, 4, norm_size=16), MLP), Layer(GQA, MLP), times=2
    ),
    "side by side": stacked(Layer(replace(GQA, beside=Mamba2(8, 16, 8, 4, 4)), MLP), times=4),
    "gated recurrence": stacked(
        Layer(ShortConvolution(64, 3, bias=True, recurrence_blocks=8), MLP), Layer(GQA, MLP), times=2
    ),
    "short convolution": stacked(Layer(ShortConvolution(64, 3), MLP), Layer(GQA, MLP), times=2),
}
