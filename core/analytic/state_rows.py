"""The rows of mixers that keep a state: state spaces, linear attention, short convolutions.

The state is read and written once in a pass, whatever the number of tokens: a pass of one token moves
as much of it as a pass of thousands. FLOPs are those of the recurrence, token by token; kernels that
work in chunks of tokens do more of them, as matrix products.
"""

from __future__ import annotations

import numpy as np

from core.analytic.forward_pass import LayerRows, bytes_of
from core.analytic.table import Row
from core.catalog.formats import STORAGE_FORMATS
from core.catalog.mixers import State
from core.catalog.state_mixers import LinearAttention, Mamba, Mamba2, ShortConvolution
from core.units import FLOPS_PER_MAC, Number

#: Running sums are kept in fp32, whatever the weights are in.
_RECURRENT = STORAGE_FORMATS["fp32"]


def mamba_rows(mixer: Mamba, make: LayerRows) -> list[Row]:
    """Mamba 1: in, convolution, step sizes with B and C, the scan, out.

    The scan updates each of a channel's values and reads them out: two products a value.
    """
    inner, parameters = mixer.inner_size, mixer.time_rank + 2 * mixer.state_size
    return [
        *make.linear("mamba_in"),
        _convolution(inner, mixer.kernel, mixer.state, make),
        *make.linear("mamba_parameters"),
        *make.exchange(
            "mamba_parameters_all_reduce",
            "all_reduce",
            make.forward.split.tensor,
            make.forward.moved(parameters),
        ),
        *(make.norm("mamba_norm", parameters) if mixer.inner_norms else []),
        *make.linear("mamba_steps"),
        _recurrence(mixer.state, 2, 4 * inner, make),
        *make.linear("mamba_out"),
    ]


def mamba2_rows(mixer: Mamba2, make: LayerRows) -> list[Row]:
    """Mamba 2: the same with heads; step sizes, B and C come from the first projection."""
    return [
        *make.linear("mamba_in"),
        _convolution(mixer.conv_channels, mixer.kernel, mixer.state, make),
        _recurrence(mixer.state, 2, mixer.conv_channels + 2 * mixer.inner_size, make),
        *(make.norm("mamba_norm", mixer.inner_size) if mixer.gated_norm else []),
        *make.linear("mamba_out"),
    ]


def linear_attention_rows(mixer: LinearAttention, make: LayerRows) -> list[Row]:
    """Linear attention with a decay.

    A learned rate comes with the delta rule, which first reads out what the key already recalls: three
    products with the key-by-value matrix a token; fixed rates need two.
    """
    products = 2 if mixer.decay == "fixed" else 3
    passed = 2 * mixer.key_features + 2 * mixer.value_features
    return [
        *make.linear("linear_in"),
        *([_convolution(mixer.conv_channels, mixer.kernel, mixer.state, make)] if mixer.kernel else []),
        *make.linear("linear_decay"),
        _recurrence(mixer.state, products, passed, make),
        *make.linear("linear_gate"),
        *(make.norm("linear_norm", mixer.value_features) if mixer.norm_size else []),
        *make.linear("linear_out"),
    ]


def short_convolution_rows(mixer: ShortConvolution, make: LayerRows) -> list[Row]:
    """A gated convolution, and RecurrentGemma's recurrence after it.

    The recurrence's two gates are products with square blocks; the rest of it is a few products a channel.
    """
    products = 2 * mixer.block_width
    return [
        *make.linear("conv_in"),
        _convolution(mixer.channels, mixer.kernel, mixer.state, make),
        *([_recurrence(mixer.state, products, 4 * mixer.channels, make)] if products else []),
        *make.linear("conv_out"),
    ]


def _convolution(channels: int, kernel: int, state: State, make: LayerRows) -> Row:
    """A product a channel and tap; the last inputs are kept at the width of the activations."""
    forward = make.forward
    kept = bytes_of(make.weights.get("convolution", ()), forward.plan)
    return Row(
        "convolution",
        "recurrence",
        forward.activation,
        make.repeats,
        forward.tokens,
        flops=forward.tokens * (FLOPS_PER_MAC * channels * kernel),
        weight_stored_bytes=kept,
        weight_streamed_bytes=kept,
        activation_bytes=forward.moved(2 * channels),
        state_bytes=_traffic(make) * (state.convolution * forward.element),
    )


def _recurrence(state: State, products: int, features: int, make: LayerRows) -> Row:
    forward = make.forward
    kept = bytes_of(make.weights.get("state", ()), forward.plan)
    return Row(
        "state",
        "recurrence",
        forward.activation,
        make.repeats,
        forward.tokens,
        flops=forward.tokens * (FLOPS_PER_MAC * products * state.recurrent),
        weight_stored_bytes=kept,
        weight_streamed_bytes=kept,
        activation_bytes=forward.moved(features),
        state_bytes=_traffic(make) * int(_RECURRENT.vector_bytes(state.recurrent)),
    )


def _traffic(make: LayerRows) -> Number:
    """How often the states of a batch cross the memory bus: written, and read unless they are new."""
    forward = make.forward
    begun = np.asarray(forward.context, np.float64) > forward.new_tokens
    return forward.batch * (1.0 + begun)
