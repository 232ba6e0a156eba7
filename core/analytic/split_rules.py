"""What must divide so that a model can be split: heads, columns, groups, experts, layers.

The rules are those of serving engines. Vocabularies are padded, so they constrain nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from core.analytic.parallel import ParallelPlan
from core.analytic.params import layer_kinds, weight_plan
from core.analytic.shares import kv_heads_on_chip
from core.catalog.feed_forward import DenseMLP, MoE
from core.catalog.formats import NumberFormat
from core.catalog.mixers import Attention, CompressedAttention, LatentAttention
from core.catalog.model import Mixer, ModelSpec
from core.catalog.state_mixers import LinearAttention, Mamba, Mamba2, ShortConvolution

Topic = Literal[
    "heads", "columns", "groups", "experts", "layers", "context", "chips", "link", "format", "memory"
]

#: The largest tensor-parallel degree that is looked at.
MOST_TENSOR: Final = 64


@dataclass(frozen=True, slots=True)
class Violation:
    """One reason against a plan: what it is about, and what must hold, what came, what to do."""

    topic: Topic
    sentence: str


def split_violations(model: ModelSpec, plan: ParallelPlan) -> tuple[Violation, ...]:
    """What of the model does not divide by the plan."""
    found: dict[str, Violation] = {}
    for layer, _ in layer_kinds(model):
        if layer.mixer is not None:
            _keep(found, _mixer_violations(layer.mixer, plan))
        if layer.feed_forward is not None:
            part = layer.feed_forward
            checks = (
                _mlp_violations(part, plan.tp) if isinstance(part, DenseMLP) else _moe_violations(part, plan)
            )
            _keep(found, checks)
    _keep(found, _layer_violations(model, plan) + _sequence_violations(plan))
    if plan.ep > 1 and not any(isinstance(layer.feed_forward, MoE) for layer in model.layers):
        _keep(
            found,
            [Violation("experts", f"Expert parallelism needs experts; {model.name} has none. Set ep to 1.")],
        )
    return tuple(found.values())


def valid_tensor_degrees(num_heads: int, num_kv_heads: int, most: int = MOST_TENSOR) -> list[int]:
    """Degrees that divide the heads, and the KV heads or are divided by them.

    >>> valid_tensor_degrees(28, 4), valid_tensor_degrees(52, 52)
    ([1, 2, 4, 28], [1, 2, 4, 13, 26, 52])
    """
    return [
        tp
        for tp in range(1, most + 1)
        if num_heads % tp == 0 and (num_kv_heads % tp == 0 or tp % num_kv_heads == 0)
    ]


def _keep(found: dict[str, Violation], more: list[Violation]) -> None:
    """Layers of a kind have the same problems: one sentence each."""
    for one in more:
        found.setdefault(one.sentence, one)


# --- Mixers ---------------------------------------------------------------------------------------


def _mixer_violations(mixer: Mixer, plan: ParallelPlan) -> list[Violation]:
    shared = _counts(mixer)
    found = [
        Violation(
            "heads",
            f"The tensor-parallel degree must divide the {count:,} {what}; {plan.tp} does not. {_try(count)}",
        )
        for what, count in shared.items()
        if count % plan.tp
    ]
    if isinstance(mixer, Attention):
        heads = mixer.num_kv_heads
        if heads % plan.tp and plan.tp % heads:
            found.append(
                Violation(
                    "heads",
                    f"The tensor-parallel degree must divide the {heads:,} KV heads or be a multiple of "
                    f"them; {plan.tp} is neither. {_try(mixer.num_heads, heads)}",
                )
            )
    return found + _context_violations(mixer, plan)


def _counts(mixer: Mixer) -> dict[str, int]:
    """What of a mixer is divided among chips, by its name."""
    if isinstance(mixer, Attention | LatentAttention):
        beside = mixer.beside if isinstance(mixer, Attention) else None
        return {"attention heads": mixer.num_heads, **({} if beside is None else _counts(beside))}
    if isinstance(mixer, CompressedAttention):
        return {"attention heads": mixer.num_heads, "output groups": mixer.output_groups}
    if isinstance(mixer, Mamba2):
        return {"state heads": mixer.num_heads}
    if isinstance(mixer, LinearAttention):
        return {"linear key heads": mixer.num_key_heads, "linear value heads": mixer.num_value_heads}
    if isinstance(mixer, Mamba):
        return {"state channels": mixer.inner_size}
    found: dict[str, int] = {}
    if isinstance(mixer, ShortConvolution):
        found["convolution channels"] = mixer.channels
        if mixer.recurrence_blocks:
            found["blocks of gates"] = mixer.recurrence_blocks
    return found


def _context_violations(mixer: Mixer, plan: ParallelPlan) -> list[Violation]:
    if plan.cp == 1 or not isinstance(mixer, Attention | LatentAttention | CompressedAttention):
        return []
    kv_heads = mixer.num_kv_heads if isinstance(mixer, Attention) else 1
    copies = plan.tp * kv_heads_on_chip(kv_heads, plan.tp) // kv_heads
    if copies % plan.cp == 0:
        return []
    return [
        Violation(
            "context",
            f"The context-parallel degree must divide the {copies:,} copies of each KV head that tensor "
            f"parallelism makes; {plan.cp} does not. Set cp to 1{f' or {copies}' if copies > 1 else ''}.",
        )
    ]


def _try(count: int, kv_heads: int | None = None) -> str:
    fine = valid_tensor_degrees(count, count if kv_heads is None else kv_heads)
    return f"Choose {_listed(fine)}."


def _listed(numbers: list[int]) -> str:
    shown = [f"{number:,}" for number in numbers[:12]]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


# --- Feed-forward parts, layers, formats -----------------------------------------------------------


def _mlp_violations(mlp: DenseMLP, chips: int, whose: str = "the MLP's") -> list[Violation]:
    if mlp.intermediate_size % chips == 0:
        return []
    return [
        Violation(
            "columns",
            f"{whose[0].upper()}{whose[1:]} {mlp.intermediate_size:,} columns must divide by the chips that "
            f"share them; {chips:,} do not. Choose another tensor-parallel degree.",
        )
    ]


def _moe_violations(part: MoE, plan: ParallelPlan) -> list[Violation]:
    found = _mlp_violations(part.expert, plan.expert_tensor, "an expert's")
    if part.shared is not None:
        found += _mlp_violations(part.shared, plan.tp, "the shared experts'")
    if part.num_experts % plan.ep:
        found.append(
            Violation(
                "experts",
                f"The expert-parallel degree must divide the {part.num_experts:,} experts; {plan.ep} does "
                "not. Choose a divisor, or an engine that adds redundant experts.",
            )
        )
    group = plan.tp * plan.dp
    if group % plan.ep or (plan.tp % plan.ep and plan.ep % plan.tp):
        found.append(
            Violation(
                "experts",
                f"The experts must be spread over part of the {plan.tp} chips of a stage, or over whole "
                f"replicas; ep {plan.ep} does not fit into tp {plan.tp} times dp {plan.dp}. "
                f"Choose {_listed(sorted({1, plan.tp, group}))}.",
            )
        )
    return found


def _layer_violations(model: ModelSpec, plan: ParallelPlan) -> list[Violation]:
    if plan.pp <= model.num_layers:
        return []
    return [
        Violation(
            "layers",
            f"Each of {plan.pp:,} pipeline stages must hold a layer; {model.name} has {model.num_layers:,}. "
            f"Choose a pipeline of up to {model.num_layers:,} stages.",
        )
    ]


def _sequence_violations(plan: ParallelPlan) -> list[Violation]:
    if plan.sp in {1, plan.tp}:
        return []
    return [
        Violation(
            "context",
            "The chips that share the tokens of norms must be those that share matrices, or none; sp "
            f"{plan.sp} is not 1 and not tp {plan.tp}. Set sp to 1 or {plan.tp}.",
        )
    ]


def group_violations(model: ModelSpec, plan: ParallelPlan, weights: str) -> list[Violation]:
    """Rows of a matrix that is split along its inputs must end where a group of its format ends."""
    formats = weight_plan(weights, model)
    found: dict[str, Violation] = {}
    for layer, _ in layer_kinds(model):
        part = layer.feed_forward
        if isinstance(part, DenseMLP):
            _keep(found, _ragged(part.intermediate_size, plan.tp, formats.linear))
        elif part is not None:
            _keep(
                found,
                _ragged(part.expert.intermediate_size, plan.expert_tensor, formats.format_of("expert")),
            )
        if isinstance(layer.mixer, Attention):
            _keep(found, _ragged(layer.mixer.output_features, plan.tp, formats.linear))
    return list(found.values())


def _ragged(inputs: int, chips: int, record: NumberFormat) -> list[Violation]:
    group = max((scale.inputs for scale in record.scales if scale.outputs), default=0)
    if chips == 1 or not group or inputs % chips or inputs % group or (inputs // chips) % group == 0:
        return []
    return [
        Violation(
            "groups",
            f"Each chip's {inputs // chips:,} inputs must be whole groups of {group} in {record.id}; "
            f"{inputs:,} over {chips} chips are not. Choose a smaller tensor-parallel degree.",
        )
    ]
