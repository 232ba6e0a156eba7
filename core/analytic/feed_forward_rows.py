"""The rows of a layer's feed-forward part: a dense MLP, or a router and its experts."""

from __future__ import annotations

import numpy as np

from core.analytic.experts import distinct_experts
from core.analytic.forward_pass import LayerRows, bytes_of
from core.analytic.table import Row
from core.catalog.feed_forward import DenseMLP, FeedForward, MoE
from core.catalog.tensors import Weight
from core.units import FLOPS_PER_MAC, Number


def feed_forward_rows(part: FeedForward, make: LayerRows) -> list[Row]:
    """Rows between the norm and the residual."""
    return _dense(part, make) if isinstance(part, DenseMLP) else _mixture(part, make)


def _dense(mlp: DenseMLP, make: LayerRows, prefix: str = "") -> list[Row]:
    first = "gate_up" if mlp.gated else "up"
    passed = mlp.input_features + mlp.intermediate_size
    return [
        *make.linear(prefix + first),
        make.simple(f"{prefix}activation", "elementwise", passed),
        *make.linear(f"{prefix}down"),
    ]


def _mixture(part: MoE, make: LayerRows) -> list[Row]:
    """The router, the experts that the tokens ask for, the shared part, and the sum of them."""
    width = part.latent_size or make.forward.hidden
    shared = [] if part.shared is None else _dense(part.shared, make, "shared_")
    picked = part.experts_per_token
    return [
        *make.linear("router", "latent_down"),
        *_sent("expert_dispatch", part, make, width),
        *_experts(part, make, width),
        *_sent("expert_combine", part, make, width),
        make.simple("experts_sum", "elementwise", (picked + 1) * width),
        *make.linear("latent_back"),
        *shared,
        *make.linear("shared_gate"),
    ]


def _experts(part: MoE, make: LayerRows, width: int) -> list[Row]:
    """The experts' products: FLOPs of the picked ones, bytes of the different ones.

    Under expert parallelism a chip holds 1 / n of the experts and computes 1 / n of all that tokens
    ask for; which experts are asked for depends on all of the tokens that meet there.
    """
    forward, expert = make.forward, part.expert
    pooled = forward.tokens * forward.split.pooled
    held = part.num_experts / forward.split.expert
    distinct = distinct_experts(part.num_experts, part.experts_per_token, pooled)
    read = distinct / part.num_experts * held
    rows = pooled * (part.experts_per_token / forward.split.expert)
    first = "experts_gate_up" if expert.gated else "experts_up"
    passed = expert.input_features + expert.intermediate_size
    return [
        _expert_row(first, make, rows, read, held),
        Row(
            "experts_activation",
            "elementwise",
            forward.activation,
            make.repeats,
            rows,
            activation_bytes=rows * (passed * forward.element),
        ),
        _expert_row("experts_down", make, rows, read, held),
    ]


def _expert_row(name: str, make: LayerRows, rows: Number, read: Number, held: float) -> Row:
    """One product of ``rows`` rows in all, spread evenly over the ``read`` experts."""
    plan, weights = make.forward.plan, make.weights[name]
    matrices = [weight for weight in weights if weight.role == "expert"]
    each = bytes_of((Weight(w.role, w.out_features, w.in_features) for w in weights), plan, name)
    features = sum(matrix.in_features + matrix.out_features for matrix in matrices)
    products = sum(matrix.out_features * matrix.in_features for matrix in matrices)
    return Row(
        name,
        "linear",
        plan.format_of("expert").id,
        make.repeats,
        np.maximum(rows / read, 1.0),
        flops=rows * (FLOPS_PER_MAC * products),
        weight_stored_bytes=np.ceil(held) * each,
        weight_streamed_bytes=read * each,
        activation_bytes=rows * (features * make.forward.element),
    )


def _sent(name: str, part: MoE, make: LayerRows, width: int) -> list[Row]:
    """Tokens on their way to the experts of other chips, or back.

    Only where the experts lie on more chips than share a matrix: within these every chip has every
    token already, and the sum goes with the layer's all-reduce. A token is sent once for each expert;
    engines that send it once for each chip send less.
    """
    split = make.forward.split
    if split.expert <= split.tensor:
        return []
    own = make.forward.tokens / split.tensor
    message = own * (part.experts_per_token * width * make.forward.element)
    return make.exchange(name, "all_to_all", split.expert, message, split.expert_spread)
