"""The numbers of "One token, counted": weights in use, FLOPs, bytes, and attention's part of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.operators import operators
from core.analytic.params import count
from core.analytic.table import Operators
from core.catalog.model import DenseMLP, Layer, ModelSpec, MoE
from core.errors import ConfigError
from core.lesson.amount import Amount, LessonCase
from core.lesson.quantities.quantity import Quantity
from core.lesson.quantities.token_work import shaped_model, token_table
from core.units import FLOPS_PER_MAC, GB

_GIGA: Final = 1e9
_MEGA: Final = 1e6
#: Prompt lengths that the page quotes beside its own.
_LONG: Final = 32_768
_BOOK: Final = 131_072
#: Prompt lengths between which attention's and the matrices' work are compared.
_LENGTHS: Final = np.geomspace(1, 1e8, 400)


# --- One token ------------------------------------------------------------------------------------


def token_flops(case: LessonCase) -> Amount:
    """FLOPs of one token at the end of the context: every operator of its pass."""
    return Amount(float(token_table(case).total("flops")) / _GIGA, "GFLOP")


def weights_in_use(case: LessonCase) -> Amount:
    """Weights that one token is multiplied with, in billions; a lookup is no product."""
    return Amount(_matrix_flops(token_table(case)) / FLOPS_PER_MAC / _GIGA, "G")


def attention_flops(case: LessonCase) -> Amount:
    """FLOPs of one token that no weight has a part in: attention, and states where there are any."""
    table = token_table(case)
    return Amount((float(table.total("flops")) - _matrix_flops(table)) / _GIGA, "GFLOP")


def attention_share(case: LessonCase) -> Amount:
    """Attention's part of the FLOPs of this token."""
    return Amount(100 * attention_flops(case).value / token_flops(case).value, "%")


def parameters(case: LessonCase) -> Amount:
    """All trained values, in billions."""
    return Amount(count(shaped_model(case)).total / _GIGA, "G")


def table_parameters(case: LessonCase) -> Amount:
    """Those of the input table, of which a token reads one row."""
    return Amount(count(shaped_model(case)).embedding / _GIGA, "G")


def flops_per_parameter(case: LessonCase) -> Amount:
    """FLOPs of one token for each parameter of the model."""
    return Amount(token_flops(case).value / parameters(case).value, "×")


def token_bytes(case: LessonCase) -> Amount:
    """Bytes that the pass of one token moves."""
    return Amount(float(token_table(case).streamed_bytes.sum()) / GB, "GB")


def context(case: LessonCase) -> Amount:
    """Tokens that this token looks at, itself included."""
    return Amount(case.scenario.input_tokens, "tokens")


def _matrix_flops(table: Operators) -> float:
    linear = [row for row, kind in enumerate(table.kinds) if kind == "linear"]
    return float(table.flops[linear].sum())


# --- One MLP --------------------------------------------------------------------------------------


def width(case: LessonCase) -> Amount:
    """Numbers in one token's vector between the layers."""
    return Amount(shaped_model(case).hidden_size)


def layers(case: LessonCase) -> Amount:
    """Decoder layers."""
    return Amount(shaped_model(case).num_layers)


def mlp_width(case: LessonCase) -> Amount:
    """Numbers between the matrices of the last layer's MLP, those of the experts in use included."""
    part = _fed(case).feed_forward
    if isinstance(part, MoE):
        shared = 0 if part.shared is None else part.shared.intermediate_size
        return Amount(part.experts_per_token * part.expert.intermediate_size + shared)
    return Amount(_dense(part).intermediate_size)


def mlp_matrices(case: LessonCase) -> Amount:
    """Matrices of an MLP: three with a gate, two without."""
    part = _fed(case).feed_forward
    expert = part.expert if isinstance(part, MoE) else _dense(part)
    return Amount(3 if expert.gated else 2)


def mlp_flops(case: LessonCase) -> Amount:
    """FLOPs of the last layer's MLP for one token, its router and latent projections apart.

    ``2 * matrices * width * MLP width``: each weight is multiplied and added once.
    """
    weights = mlp_matrices(case).value * _mlp_input(case) * mlp_width(case).value
    return Amount(FLOPS_PER_MAC * weights / _MEGA, "MFLOP")


def mlp_flops_of_two_matrices(case: LessonCase) -> Amount:
    """The same without the gate's matrix."""
    return Amount(mlp_flops(case).value * 2 / 3, "MFLOP")


def mlp_flops_of_one_matrix(case: LessonCase) -> Amount:
    """The same for one of the matrices."""
    return Amount(mlp_flops(case).value / mlp_matrices(case).value, "MFLOP")


def mlp_flops_of_all_layers(case: LessonCase) -> Amount:
    """The MLPs of all layers together."""
    return Amount(mlp_flops(case).value * layers(case).value, "MFLOP")


def mlp_input(case: LessonCase) -> Amount:
    """Numbers that go into an MLP: the width, or the latent width that the experts work in."""
    return Amount(_mlp_input(case))


def _mlp_input(case: LessonCase) -> int:
    part = _fed(case).feed_forward
    latent = part.latent_size if isinstance(part, MoE) else None
    return latent or shaped_model(case).hidden_size


def _fed(case: LessonCase) -> Layer:
    """The last layer with a feed-forward part: the kind that most layers have."""
    fed = [layer for layer in shaped_model(case).layers if layer.feed_forward is not None]
    if not fed:
        raise ConfigError("This number needs a model whose layers have an MLP. Choose another model.")
    return fed[-1]


def _dense(part: object) -> DenseMLP:
    if not isinstance(part, DenseMLP):
        raise ConfigError("This number needs a model whose layers have an MLP. Choose another model.")
    return part


# --- Attention ------------------------------------------------------------------------------------


def query_heads(case: LessonCase) -> Amount:
    """Query heads of a layer; needs layers with query and KV heads."""
    return Amount(_plain(case).layers[0].attention.num_heads)


def head_dim(case: LessonCase) -> Amount:
    """Numbers in one query and in one key."""
    return Amount(_plain(case).layers[0].attention.head_dim)


def attention_without_windows(case: LessonCase) -> Amount:
    """FLOPs of attention for one token if every layer looks at every token."""
    scenario = case.scenario
    table = operators(
        _plain(case),
        batch=1,
        new_tokens=1,
        context=scenario.input_tokens,
        weights=scenario.weights,
        kv=scenario.kv,
    )
    return Amount((float(table.total("flops")) - _matrix_flops(table)) / _MEGA, "MFLOP")


def _plain(case: LessonCase) -> ModelSpec:
    """The model with the first layer's heads in all layers, no windows, values as wide as keys."""
    spec = shaped_model(case)
    mixer = replace(spec.layers[0].attention, window=None, chunk=None, value_dim=None)
    return replace(spec, layers=(replace(spec.layers[0], mixer=mixer),) * spec.num_layers)


# --- A whole prompt -------------------------------------------------------------------------------


def prompt_attention_share(case: LessonCase) -> Amount:
    """Attention's part of the FLOPs of reading a whole prompt of the context's length."""
    return _share_at(case, case.scenario.input_tokens)


def long_prompt_attention_share(case: LessonCase) -> Amount:
    """The same for a long prompt."""
    return _share_at(case, _LONG)


def book_attention_share(case: LessonCase) -> Amount:
    """The same for a prompt as long as a book."""
    return _share_at(case, _BOOK)


def long_prompt(_: LessonCase) -> Amount:
    """The long prompt that the page quotes."""
    return Amount(_LONG, "tokens")


def book_prompt(_: LessonCase) -> Amount:
    """The book that the page quotes."""
    return Amount(_BOOK, "tokens")


def _share_at(case: LessonCase, tokens: int) -> Amount:
    matrix, attention = _prompt_flops(case, np.array([float(tokens)]))
    return Amount(100 * float(attention[0] / (matrix[0] + attention[0])), "%")


def _prompt_flops(case: LessonCase, lengths: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """FLOPs of reading prompts of some lengths: of the matrices, and of attention."""
    scenario = case.scenario
    table = operators(
        shaped_model(case),
        batch=1,
        new_tokens=lengths,
        context=lengths,
        weights=scenario.weights,
        kv=scenario.kv,
    )
    linear = [row for row, kind in enumerate(table.kinds) if kind == "linear"]
    matrix = table.flops[linear].sum(axis=0)
    return matrix, table.total("flops") - matrix


def equal_prompt(case: LessonCase) -> Amount:
    """Prompt tokens at which attention has done as many FLOPs as the matrices.

    A token looks at half of the prompt on average, so it is twice the length at which one token's
    attention costs as much as its matrices. Found between lengths on a grid, along the logarithm.

    Raises:
        ConfigError: attention never gets there, as with sliding windows.
    """
    matrix, attention = _prompt_flops(case, _LENGTHS)
    ratio = np.log(attention / matrix)
    if ratio[-1] < 0:
        raise ConfigError(
            "Attention must grow with the prompt to overtake the matrices; with windows it does not."
        )
    return Amount(float(np.exp(np.interp(0.0, ratio, np.log(_LENGTHS)))), "tokens")


def weights_in_layers(case: LessonCase) -> Amount:
    """Weights in the layers that a token is multiplied with, in billions; the head sees one token only."""
    table = token_table(case)
    head = float(table.flops[table.index("lm_head")])
    return Amount((_matrix_flops(table) - head) / FLOPS_PER_MAC / _GIGA, "G")


def attention_per_token(case: LessonCase) -> Amount:
    """FLOPs of attention for each token that is looked at, in all layers together, without windows."""
    return Amount(attention_without_windows(case).value / case.scenario.input_tokens, "MFLOP")


def equal_prompt_without_mask(case: LessonCase) -> Amount:
    """The same if every token looked at the whole prompt: half as long."""
    return Amount(equal_prompt(case).value / 2, "tokens")


def equal_prompt_of_keys_alone(case: LessonCase) -> Amount:
    """The same if attention were the product with the keys alone: twice as long."""
    return Amount(equal_prompt(case).value * 2, "tokens")


QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        token_flops, weights_in_use, attention_flops, attention_share, parameters, table_parameters,
        flops_per_parameter, token_bytes, context, width, layers, mlp_width, mlp_matrices, mlp_input,
        mlp_flops, mlp_flops_of_two_matrices, mlp_flops_of_one_matrix, mlp_flops_of_all_layers,
        query_heads, head_dim, attention_without_windows, prompt_attention_share,
        long_prompt_attention_share, book_attention_share, long_prompt, book_prompt, weights_in_layers,
        attention_per_token, equal_prompt, equal_prompt_without_mask, equal_prompt_of_keys_alone,
    )
}  # fmt: skip
