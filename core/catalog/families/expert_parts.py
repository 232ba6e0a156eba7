"""Experts as most families state them, and which layers have them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from core.catalog.families.parts import dense, num_layers, one_each
from core.catalog.fields import Fields
from core.catalog.model import DenseMLP, MoE
from core.errors import ConfigError


def experts(
    fields: Fields,
    *,
    router: Literal["plain", "bias"] = "plain",
    key: str = "moe_intermediate_size",
    shared: DenseMLP | None = None,
) -> MoE:
    """Routed experts; the router has a bias for each expert where it is said so.

    Raises:
        ConfigError: a token would be sent to more experts than there are.
    """
    number, chosen = fields.count("num_experts"), fields.count("num_experts_per_tok")
    if chosen > number:
        raise ConfigError(
            f"num_experts_per_tok must not exceed the number of experts; got {chosen:,} of {number:,}. "
            "Correct the config."
        )
    expert = dense(fields, key=key)
    return MoE(
        number,
        chosen,
        expert,
        shared,
        router_values=number if router == "bias" else 0,
        normalised=fields.flag("norm_topk_prob", default=False),
    )


def shared_experts(fields: Fields, width: int) -> DenseMLP | None:
    """``n_shared_experts`` of the routed width, which act as one MLP of their summed width."""
    number = fields.number_or("n_shared_experts", 0)
    return (
        replace(dense(fields, key="moe_intermediate_size"), intermediate_size=number * width)
        if number
        else None
    )


def moe_layers(fields: Fields) -> list[bool]:
    """Which layers have experts, by whichever keys the config says it.

    ``mlp_layer_types`` ("dense" or another word); ``moe_layer_freq`` as a list; ``moe_layers_enum`` or
    ``moe_layers`` as indices; ``expert_layer_period`` and its offset; ``mlp_only_layers`` with
    ``decoder_sparse_step``; ``first_k_dense_replace`` with a frequency.
    """
    layers = num_layers(fields)
    named = fields.texts("mlp_layer_types")
    if named is not None:
        one_each("mlp_layer_types", named, layers)
        return [name != "dense" for name in named]
    listed = fields.value("moe_layer_freq")
    if isinstance(listed, list):
        one_each("moe_layer_freq", listed, layers)
        return [bool(item) for item in fields.counts("moe_layer_freq") or []]
    chosen = _moe_indices(fields)
    if chosen is not None:
        return [index in chosen for index in range(layers)]
    if fields.has("expert_layer_period"):
        period, offset = fields.count("expert_layer_period"), fields.number_or("expert_layer_offset", 0)
        return [index % period == offset for index in range(layers)]
    first = fields.number_or("first_k_dense_replace", 0)
    every = fields.optional_count("moe_layer_freq") or 1
    step = (
        fields.optional_count("decoder_sparse_step")
        or fields.optional_count("interleave_moe_layer_step")
        or 1
    )
    without = set(fields.counts("mlp_only_layers") or [])
    return [
        index >= first and index % every == 0 and (index + 1) % step == 0 and index not in without
        for index in range(layers)
    ]


def _moe_indices(fields: Fields) -> set[int] | None:
    text = fields.value("moe_layers_enum")
    if isinstance(text, str):
        parts = text.split(",")
        if not all(part.strip().isdigit() and len(part) < 8 for part in parts):
            raise ConfigError(
                f"moe_layers_enum must be layer numbers with commas; got {text[:60]!r}. Correct the config."
            )
        return {int(part) for part in parts}
    listed = fields.counts("moe_layers")
    return set(listed) if listed else None
