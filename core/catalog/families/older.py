"""Older decoders: layer norms, MLPs without a gate, learned or ALiBi positions, parallel parts."""

from __future__ import annotations

from dataclasses import replace

from core.catalog.families.family import Decoder
from core.catalog.families.parts import LAYER_NORM, attention, dense, num_layers, stack
from core.catalog.fields import Fields
from core.catalog.model import RMS_NORM, Attention, DenseMLP, Layer, Norm

_ONE_NORM = ("attention_norm",)


def _four_times(fields: Fields, *, bias: bool) -> DenseMLP:
    """An MLP without a gate, four times as wide as the model unless the config says otherwise."""
    width = fields.optional_count("intermediate_size") or 4 * fields.count("hidden_size")
    activation = fields.text("hidden_act") or "gelu"
    return DenseMLP(width, bias, gated=False, activation=activation[:40])


def _uniform(fields: Fields, layer: Layer) -> tuple[Layer, ...]:
    return (layer,) * num_layers(fields)


def _unrotated(fields: Fields, *, qkv_bias: bool, output_bias: bool) -> Attention:
    return attention(fields, qkv_bias=qkv_bias, output_bias=output_bias, rotary=False)


def gpt2(fields: Fields) -> Decoder:
    """GPT-2 and its kin: learned positions, biases everywhere."""
    layer = Layer(
        _unrotated(fields, qkv_bias=True, output_bias=True), _four_times(fields, bias=True), norm=LAYER_NORM
    )
    return _learned(fields, _uniform(fields, layer))


def _learned(fields: Fields, layers: tuple[Layer, ...]) -> Decoder:
    rows = fields.count("max_position_embeddings")
    return Decoder(layers, positions="learned", position_rows=rows, norm=LAYER_NORM)


def gpt_bigcode(fields: Fields) -> Decoder:
    """StarCoder 1, SantaCoder: GPT-2 with one KV head where multi_query is on."""
    mixer = _unrotated(fields, qkv_bias=True, output_bias=True)
    if fields.flag("multi_query", default=True):
        mixer = replace(mixer, num_kv_heads=1)
    layer = Layer(mixer, _four_times(fields, bias=True), norm=LAYER_NORM)
    return _learned(fields, _uniform(fields, layer))


def gpt_neo(fields: Fields) -> Decoder:
    """GPT-Neo: no biases on Q, K and V; every second layer looks back a window."""
    mixer = _unrotated(fields, qkv_bias=False, output_bias=True)
    window = fields.optional_count("window_size") or 256
    layers = stack(
        fields,
        [index % 2 for index in range(num_layers(fields))],
        lambda at, local: Layer(
            replace(mixer, window=window if local else None), _four_times(at, bias=True), norm=LAYER_NORM
        ),
    )
    return _learned(fields, layers)


def gpt_neox(fields: Fields) -> Decoder:
    """GPT-NeoX and Pythia: rotary on a part of each head, biases everywhere, parts side by side."""
    bias = fields.flag("attention_bias", default=True)
    parallel = fields.flag("use_parallel_residual", default=True)
    mixer = attention(fields, qkv_bias=bias, output_bias=bias)
    part = fields.real("partial_rotary_factor", fields.real("rotary_pct", 0.25))
    mixer = replace(mixer, rotary_dim=int(mixer.head_dim * min(part, 1.0)))
    layer = Layer(mixer, _four_times(fields, bias=True), norm=LAYER_NORM, parallel=parallel)
    return Decoder(_uniform(fields, layer), norm=LAYER_NORM)


def gptj(fields: Fields) -> Decoder:
    """GPT-J and CodeGen: one norm before attention without biases and an MLP with them."""
    mixer = replace(attention(fields), rotary_dim=fields.optional_count("rotary_dim") or 64)
    layer = Layer(mixer, _four_times(fields, bias=True), _ONE_NORM, LAYER_NORM, parallel=True)
    return Decoder(_uniform(fields, layer), norm=LAYER_NORM, head_bias=True)


def phi(fields: Fields) -> Decoder:
    """Phi-1 to Phi-2: biases everywhere, the head included; one norm before parts side by side."""
    mixer = attention(fields, qkv_bias=True, output_bias=True)
    part = fields.real("partial_rotary_factor", 0.5)
    normed = fields.flag("qk_layernorm", default=False)
    mixer = replace(
        mixer,
        rotary_dim=int(mixer.head_dim * min(part, 1.0)),
        qk_norm=normed,
        qk_norm_values=4 * mixer.head_dim if normed else None,
    )
    layer = Layer(mixer, dense(fields, bias=True, gated=False), _ONE_NORM, LAYER_NORM, parallel=True)
    return Decoder(_uniform(fields, layer), norm=LAYER_NORM, head_bias=True)


def opt(fields: Fields) -> Decoder:
    """OPT: learned positions with two rows to spare; the smallest ones have a narrower input table."""
    bias = fields.flag("enable_bias", default=True)
    trained = fields.flag("layer_norm_elementwise_affine", default=True)
    norm = Norm("layer", weight=trained, bias=trained)
    layer = Layer(
        _unrotated(fields, qkv_bias=bias, output_bias=bias),
        dense(fields, bias=bias, gated=False),
        norm=norm,
    )
    before = fields.flag("do_layer_norm_before", default=True)
    removed = fields.flag("_remove_final_layer_norm", default=False)
    width = fields.optional_count("word_embed_proj_dim")
    return Decoder(
        _uniform(fields, layer),
        positions="learned",
        position_rows=fields.count("max_position_embeddings") + 2,
        norm=norm,
        final_norm=before and not removed,
        embedding_size=None if width == fields.count("hidden_size") else width,
    )


def bloom(fields: Fields) -> Decoder:
    """BLOOM: ALiBi, a norm after the input table, biases everywhere."""
    mixer = replace(_unrotated(fields, qkv_bias=True, output_bias=True))
    layer = Layer(mixer, _four_times(fields, bias=True), norm=LAYER_NORM)
    return Decoder(_uniform(fields, layer), positions="alibi", norm=LAYER_NORM, embedding_norm=True)


def mpt(fields: Fields) -> Decoder:
    """MPT: settings of attention in a table of their own; ALiBi or learned positions; mostly no biases."""
    inner = fields.inside("attn_config")
    bias = not fields.flag("no_bias", default=True)
    norm = Norm("layer", bias=bias)
    mixer = _unrotated(inner, qkv_bias=bias, output_bias=bias)
    if inner.flag("qk_ln", default=False):
        mixer = replace(
            mixer, qk_norm=True, qk_norm_values=norm.values(mixer.query_features + mixer.kv_features)
        )
    width = fields.optional_count("intermediate_size")
    if width is None:
        ratio = fields.real("expansion_ratio", 4.0)
        width = int(min(ratio, 1e4) * fields.count("hidden_size"))
    mlp = DenseMLP(
        fields.whole("expansion_ratio * hidden_size", width, least=1), bias, gated=False, activation="gelu"
    )
    alibi = inner.flag("alibi", default=False)
    learned = not alibi and fields.flag("learned_pos_emb", default=True)
    return Decoder(
        _uniform(fields, Layer(mixer, mlp, norm=norm)),
        positions="alibi" if alibi else "learned" if learned else "none",
        position_rows=fields.count("max_position_embeddings") if learned else 0,
        norm=norm,
    )


def falcon(fields: Fields) -> Decoder:
    """Falcon: parts side by side behind one norm (two in the 40B design), ALiBi in the oldest.

    ``multi_query`` in the old design means one KV head, whatever else the config says.
    """
    bias = fields.flag("bias", default=False)
    new = fields.flag("new_decoder_architecture", default=False)
    alibi = fields.flag("alibi", default=False)
    mixer = attention(
        fields if new else _without_kv_heads(fields), qkv_bias=bias, output_bias=bias, rotary=not alibi
    )
    if not new and fields.flag("multi_query", default=True):
        mixer = replace(mixer, num_kv_heads=1)
    parallel = new or fields.flag("parallel_attn", default=True)
    single = fields.number_or("num_ln_in_parallel_attn", 2 if new else 1) == 1
    norms = _ONE_NORM if parallel and single else ("attention_norm", "mlp_norm")
    layer = Layer(mixer, _four_times(fields, bias=bias), norms, LAYER_NORM, parallel)
    return Decoder(_uniform(fields, layer), positions="alibi" if alibi else "rotary", norm=LAYER_NORM)


def _without_kv_heads(fields: Fields) -> Fields:
    return fields.over({"num_key_value_heads": fields.count("num_attention_heads")})


def chatglm(fields: Fields) -> Decoder:
    """ChatGLM2, 3 and GLM-4-9B in their first form: a bias on Q, K and V, shared KV heads by a flag."""
    bias = fields.flag("add_bias_linear", default=False)
    qkv_bias = bias or fields.flag("add_qkv_bias", default=False)
    shared = fields.flag("multi_query_attention", default=False)
    mixer = attention(fields if shared else _without_kv_heads(fields), qkv_bias=qkv_bias, output_bias=bias)
    mixer = replace(mixer, rotary_dim=mixer.head_dim // 2)
    norm = RMS_NORM if fields.flag("rmsnorm", default=True) else LAYER_NORM
    layer = Layer(mixer, dense(fields, bias=bias), norm=norm)
    last = fields.flag("post_layer_norm", default=True)
    return Decoder(_uniform(fields, layer), norm=norm, final_norm=last)


def qwen(fields: Fields) -> Decoder:
    """Qwen 1: a bias on Q, K and V; the stated width is that of both halves of the MLP together."""
    bias = not fields.flag("no_bias", default=True)
    mixer = attention(fields, qkv_bias=True, output_bias=bias)
    mlp = dense(fields, bias=bias)
    layer = Layer(mixer, replace(mlp, intermediate_size=max(mlp.intermediate_size // 2, 1)))
    return Decoder(_uniform(fields, layer))
