"""The words of the pages: what each operator and each quantity is called, and what it is."""

from __future__ import annotations

from typing import Final

#: Operator -> its name on a page, and one sentence on what it does.
OPERATORS: Final[dict[str, tuple[str, str]]] = {
    "embedding": ("embedding", "Looks up one row of the input table for each new token."),
    "attention_norm": ("norm before attention", "Scales the hidden state before attention."),
    "qkv": ("QKV projection", "Makes queries, keys and values from the hidden state."),
    "qk_norm": ("QK norm", "Scales each query and key head."),
    "rope": ("rotary positions", "Turns queries and keys by their position."),
    "kv_write": ("cache write", "Stores the new keys and values."),
    "attention": ("attention", "Reads the stored keys and values of every earlier token."),
    "output": ("attention output", "Mixes the heads back into the hidden state."),
    "attention_residual": ("residual after attention", "Adds the attention block's result."),
    "mlp_norm": ("norm before MLP", "Scales the hidden state before the MLP."),
    "gate_up": ("MLP gate and up", "The MLP's two wide matrices, in one product."),
    "activation": ("MLP activation", "SiLU of the gate, times up."),
    "down": ("MLP down", "The MLP's matrix back to the hidden size."),
    "mlp_residual": ("residual after MLP", "Adds the MLP block's result."),
    "final_norm": ("final norm", "Scales the hidden state before the head."),
    "lm_head": ("output head", "Gives each word of the vocabulary a score."),
    "sample": ("choice of token", "Picks the next token from the scores."),
}


def operator_name(name: str) -> str:
    """What a page calls an operator; an unknown one keeps its own name."""
    return OPERATORS.get(name, (name.replace("_", " "), ""))[0]
