"""What one token asks of each operator: parameters, FLOPs and bytes, for the pictures of page 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from core.analytic.operators import operators
from core.analytic.params import Weight, layer_kinds, layer_weights, outer_weights
from core.analytic.table import Operators
from core.catalog.model import Attention, DenseMLP, FeedForward, Layer, ModelSpec, MoE
from core.errors import ConfigError
from core.lesson.amount import LessonCase

AS_IT_IS: Final = "as it is"
WIDE: Final = "twice as wide"
DEEP: Final = "twice as deep"
UNSHARED: Final = "no shared KV heads"
#: What page 1 can do to the shape of a model.
SHAPES: Final = (AS_IT_IS, WIDE, DEEP, UNSHARED)
#: Operators after the layers that have no tensors of their own.
_LATE: Final = frozenset({"sample", "logits_gather"})
_MOST_MATRICES: Final = 2


@dataclass(frozen=True, slots=True)
class OperatorWork:
    """One operator of a token's pass, all its repeats together.

    Attributes:
        name, kind: as in the operator table. repeats: how often it runs. inside: it belongs to a layer.
        matrices: its matrices in one layer, as text; empty where it has none.
        parameters: trained values that belong to it.
        flops: multiplies and adds. weight_bytes, cache_bytes, activation_bytes: what it moves.
    """

    name: str
    kind: str
    repeats: int
    inside: bool
    matrices: str
    parameters: int
    flops: float
    weight_bytes: float
    cache_bytes: float
    activation_bytes: float

    @property
    def bytes(self) -> float:
        """Everything that it moves."""
        return self.weight_bytes + self.cache_bytes + self.activation_bytes


def shaped_model(case: LessonCase) -> ModelSpec:
    """The case's model with the page's change of shape.

    Raises:
        ConfigError: its heads cannot be changed so.
    """
    shape = str(case.settings.get("shape", AS_IT_IS))
    spec = case.model
    if shape == DEEP:
        return replace(spec, layers=spec.layers * 2)
    if shape == WIDE:
        return replace(spec, hidden_size=2 * spec.hidden_size, layers=_each(spec, _wider))
    return replace(spec, layers=_each(spec, _unshared)) if shape == UNSHARED else spec


def _each(spec: ModelSpec, change: Callable[[Layer], Layer]) -> tuple[Layer, ...]:
    changed = [(layer, change(layer)) for layer, _ in layer_kinds(spec)]
    return tuple(next(new for old, new in changed if old == layer) for layer in spec.layers)


def _wider(layer: Layer) -> Layer:
    mixer = layer.mixer
    if isinstance(mixer, Attention):
        mixer = replace(mixer, num_heads=2 * mixer.num_heads, num_kv_heads=2 * mixer.num_kv_heads)
    return replace(layer, mixer=mixer, feed_forward=_wider_part(layer.feed_forward))


def _wider_part(part: FeedForward | None) -> FeedForward | None:
    if isinstance(part, DenseMLP):
        return replace(part, intermediate_size=2 * part.intermediate_size)
    if isinstance(part, MoE):
        shared = None if part.shared is None else _wider_mlp(part.shared)
        return replace(part, expert=_wider_mlp(part.expert), shared=shared)
    return part


def _wider_mlp(part: DenseMLP) -> DenseMLP:
    return replace(part, intermediate_size=2 * part.intermediate_size)


def _unshared(layer: Layer) -> Layer:
    if not isinstance(layer.mixer, Attention):
        raise ConfigError(
            "A KV head for each query head needs layers that have both; this model has other layers too. "
            f"Choose the shape {AS_IT_IS!r}."
        )
    return replace(layer, mixer=replace(layer.mixer, num_kv_heads=layer.mixer.num_heads))


def token_table(case: LessonCase) -> Operators:
    """The pass of one token at the end of a context of ``input_tokens``, itself included."""
    scenario = case.scenario
    return operators(
        shaped_model(case),
        batch=1,
        new_tokens=1,
        context=scenario.input_tokens,
        weights=scenario.weights,
        kv=scenario.kv,
    )


def operator_names(case: LessonCase) -> list[str]:
    """The operators of the case's model in order, each once."""
    return [work.name for work in work_by_operator(case)]


def work_by_operator(case: LessonCase) -> list[OperatorWork]:
    """Each operator of a token's pass, in execution order; kinds of layers are summed.

    Tensors of no operator (scalars on an output) are left out.
    """
    spec, table = shaped_model(case), token_table(case)
    tensors = _tensors(spec)
    outside = set(outer_weights(spec)) | _LATE
    columns = {
        "flops": table.flops,
        "weight_bytes": table.weight_streamed_bytes,
        "cache_bytes": table.kv_read_bytes + table.kv_write_bytes + table.state_bytes,
        "activation_bytes": table.activation_bytes,
    }
    sums = {name: table.by_name(column) for name, column in columns.items()}
    repeats = table.by_name(table.repeats)
    return [
        OperatorWork(
            name=name,
            kind=table.kinds[table.index(name)],
            repeats=int(repeats[name]),
            inside=name not in outside,
            matrices=_matrices(tensors.get(name, ([], 0))[0]),
            parameters=tensors.get(name, ([], 0))[1],
            **{column: float(values[name]) for column, values in sums.items()},
        )
        for name in repeats
    ]


def _tensors(spec: ModelSpec) -> dict[str, tuple[list[Weight], int]]:
    """By operator: the tensors of the first layer that has it, and all its parameters."""
    found: dict[str, tuple[list[Weight], int]] = {}
    for layer, repeats in layer_kinds(spec):
        for name, weights in layer_weights(layer, spec.hidden_size).items():
            first, known = found.get(name, (list(weights), 0))
            found[name] = (first, known + repeats * sum(weight.count for weight in weights))
    for name, weights in outer_weights(spec).items():
        # A tied head is the input table again: its parameters are counted there.
        own = weights[1:] if name == "lm_head" and spec.tied_embeddings else weights
        found[name] = (list(weights), sum(weight.count for weight in own))
    return found


def _matrices(weights: list[Weight]) -> str:
    shapes = [
        f"{f'{weight.copies:,} of ' if weight.copies > 1 else ''}{weight.out_features:,} × "
        f"{weight.in_features:,}"
        for weight in weights
        if weight.out_features > 1
    ]
    more = f" and {len(shapes) - _MOST_MATRICES} more" if len(shapes) > _MOST_MATRICES else ""
    return ", ".join(shapes[:_MOST_MATRICES]) + more
