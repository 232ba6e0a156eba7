"""Models whose layers differ in size: OpenELM's growing layers, and what a search left of a Llama."""

from __future__ import annotations

from dataclasses import replace

from core.catalog.families.family import Decoder
from core.catalog.families.parts import attention, dense, num_layers, one_each
from core.catalog.fields import Fields
from core.catalog.model import Attention, DenseMLP, Layer
from core.errors import ConfigError


def openelm(fields: Fields) -> Decoder:
    """OpenELM: heads by layer in two lists, and a multiple of the width by layer for the MLP."""
    layers, hidden = num_layers(fields), fields.count("hidden_size")
    normed = fields.flag("normalize_qk_projections", default=True)
    divisor = fields.optional_count("ffn_dim_divisor") or 256
    multiples = _reals(fields, "ffn_multipliers", layers)

    def layer(index: int) -> Layer:
        at = fields.at(index)
        width = _divisible(multiples[index] * hidden, divisor)
        mlp = DenseMLP(fields.whole("intermediate_size", width, least=1))
        return Layer(attention(at, qk_norm=normed), mlp)

    return Decoder(tuple(layer(index) for index in range(layers)))


def _divisible(width: float, divisor: int) -> int:
    """The nearest multiple, at least one, and never a tenth below the width."""
    rounded = max(divisor, int(width + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * width else rounded


def _reals(fields: Fields, key: str, layers: int) -> list[float]:
    """A list of positive numbers, one a layer."""
    values = fields.value(key)
    if not isinstance(values, list):
        raise ConfigError(
            f"The config must state {key}, one number a layer; it does not. Paste the whole file."
        )
    one_each(key, values, layers)
    return [min(Fields({key: value}).real(key, 1.0), 1e4) for value in values]


def nemotron_nas(fields: Fields) -> Decoder:
    """Llama-Nemotron: ``block_configs`` has, by layer, queries a KV head and the MLP's width, or no part."""
    blocks = fields.value("block_configs")
    layers = num_layers(fields)
    if not isinstance(blocks, list):
        raise ConfigError("The config must state block_configs; it is missing or null. Paste the whole file.")
    one_each("block_configs", blocks, layers)
    return Decoder(tuple(_block(fields, block) for block in blocks))


def _block(fields: Fields, block: object) -> Layer:
    parts = Fields({"block": block}).table("block")
    mixer, mlp = (parts.table("attention"), parts.table("ffn")) if parts else (None, None)
    if mixer is None or mlp is None:
        raise ConfigError(
            "Each of block_configs must state attention and ffn; one does not. Correct the config."
        )
    for part in (mixer, mlp):
        if part.flag("replace_with_linear", default=False):
            raise ConfigError(
                "block_configs with replace_with_linear cannot be counted yet. Choose another model."
            )
    heads = None if mixer.flag("no_op", default=False) else _grouped(fields, mixer)
    width = None if mlp.flag("no_op", default=False) else _width(fields, mlp)
    norms = tuple(name for name, part in (("attention_norm", heads), ("mlp_norm", width)) if part)
    return Layer(heads, width, norms)


def _grouped(fields: Fields, block: Fields) -> Attention:
    heads, group = fields.count("num_attention_heads"), block.count("n_heads_in_group")
    if heads % group:
        raise ConfigError(
            f"n_heads_in_group must divide num_attention_heads; got {group:,} and {heads:,}. "
            "Correct the config."
        )
    return attention(fields.over({"num_key_value_heads": heads // group}))


def _width(fields: Fields, block: Fields) -> DenseMLP:
    """Two thirds of the multiple of the width, rounded up to 256, as Llama has it."""
    multiple = min(block.real("ffn_mult", 1.0), 1e4)
    width = -(-int(2 * multiple * fields.count("hidden_size") / 3) // 256) * 256
    sized = dense(fields.over({"intermediate_size": 1}))
    return replace(sized, intermediate_size=fields.whole("ffn_mult", width, least=1))
