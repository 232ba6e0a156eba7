"""Where families differ: patterns, windows, heads, names of keys, and what stands around the text model."""

import json
import tomllib
from typing import Any

import pytest

from core.analytic.kv_cache import bytes_per_token, cache_bytes, index_bytes, state_bytes
from core.analytic.params import count
from core.catalog.assets import FOLDER
from core.catalog.families import FAMILIES
from core.catalog.hf_config import read_config
from core.catalog.model import Attention, CompressedAttention, LatentAttention, ModelSpec, MoE
from core.catalog.models import model
from core.errors import ConfigError

TABLES: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "models.toml").read_text())
SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
    "sliding_window": 16,
}


def windows(spec: ModelSpec) -> list[int | None]:
    return [layer.attention.window for layer in spec.layers]


def same_model(first: ModelSpec, second: ModelSpec) -> bool:
    """Equal in everything that is counted; notes and names may differ."""
    return (first.layers, count(first)) == (second.layers, count(second))


@pytest.mark.parametrize(
    ("change", "full"),
    [
        ({"model_type": "gemma2"}, [1, 3, 5, 7]),
        ({"model_type": "gemma3_text"}, [5]),
        ({"model_type": "gemma3_text", "sliding_window_pattern": 4}, [3, 7]),
        ({"model_type": "cohere2"}, [3, 7]),
        ({"model_type": "olmo3"}, [3, 7]),
        ({"model_type": "exaone4", "sliding_window_pattern": "LLLG"}, [3, 7]),
        ({"model_type": "gpt_oss", "num_local_experts": 4}, [1, 3, 5, 7]),
        ({"model_type": "mistral"}, []),
        ({"model_type": "mistral", "sliding_window": None}, list(range(8))),
        ({"model_type": "phi3"}, []),
        ({"model_type": "qwen2"}, list(range(8))),
        ({"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 3}, [0, 1, 2]),
        ({"model_type": "gemma2", "layer_types": ["full_attention"] + ["sliding_attention"] * 7}, [0]),
        (
            {"model_type": "mimo_v2_flash", "hybrid_layer_pattern": [0, 1] * 4, "n_routed_experts": 4},
            [0, 2, 4, 6],
        ),
    ],
)
def test_each_family_knows_its_global_layers(change: dict[str, Any], full: list[int]) -> None:
    found = windows(read_config({**SIZES, "swa_num_key_value_heads": 2, "num_experts_per_tok": 2, **change}))
    assert [index for index, window in enumerate(found) if window is None] == full
    assert {window for window in found if window is not None} <= {16}


def test_llama_4_attends_in_chunks_but_every_fourth_layer() -> None:
    spec = model("llama-4-scout-17b-16e")
    chunks = [layer.attention.chunk for layer in spec.layers]
    assert chunks[:8] == [8192, 8192, 8192, None] * 2
    full = 12 * 2 * 8 * 128 * 2
    cached = cache_bytes(spec, "bf16", 1, 100_000)
    assert float(cached) == full * 100_000 + 3 * full * 8192
    assert bytes_per_token(spec, "bf16") == 4 * full


def test_old_names_mean_the_same_as_new_ones() -> None:
    new = {
        "model_type": "gpt2",
        "hidden_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 96,
        "max_position_embeddings": 32,
        "vocab_size": 50,
    }
    old = {
        "model_type": "gpt2",
        "n_embd": 48,
        "n_layer": 2,
        "n_head": 4,
        "n_inner": 96,
        "n_positions": 32,
        "vocab_size": 50,
    }
    assert read_config(new) == read_config(old)
    assert (
        count(read_config(old)).total
        == 50 * 48 + 32 * 48 + 2 * (4 * 48 * 49 + 2 * 48 * 96 + 96 + 48 + 4 * 48) + 96
    )


@pytest.mark.parametrize("id", [key for key, table in TABLES.items() if "text_config" not in table])
def test_a_nested_config_is_read_like_a_flat_one(id: str) -> None:
    flat = TABLES[id]
    nested = {"model_type": "some_wrapper", "text_config": flat, "tie_word_embeddings": None}
    assert same_model(read_config(flat), read_config(nested))


@pytest.mark.parametrize("id", list(TABLES))
def test_null_counts_as_absent_for_every_family(id: str) -> None:
    config = TABLES[id]
    absent = [
        key for key in ("head_dim", "num_key_value_heads", "rope_scaling", "layer_types") if key not in config
    ]
    assert same_model(read_config({**config, **dict.fromkeys(absent)}), read_config(config))


def test_numbers_may_differ_by_layer() -> None:
    config = {**SIZES, "model_type": "llama", "num_hidden_layers": 3, "head_dim": 16}
    spec = read_config({**config, "num_key_value_heads": [1, 2, 4], "intermediate_size": [32, 64, 96]})
    assert [layer.attention.num_kv_heads for layer in spec.layers] == [1, 2, 4]
    assert [layer.mlp.intermediate_size for layer in spec.layers] == [32, 64, 96]
    with pytest.raises(
        ConfigError, match=r"num_key_value_heads must have one entry a layer; got 2 for 3 layers"
    ):
        read_config({**config, "num_key_value_heads": [1, 2]})


def test_latents_are_kept_once_and_their_indexer_apart() -> None:
    spec = model("deepseek-v3.2")
    mixer = spec.layers[0].mixer
    assert isinstance(mixer, LatentAttention)
    assert mixer.indexer is not None
    assert bytes_per_token(spec, "bf16") == 61 * (512 + 64) * 2
    assert float(index_bytes(spec, 2, 1000)) == 2 * 1000 * 61 * (128 + 4)
    lite = model("deepseek-v2-lite").layers[0].mixer
    assert isinstance(lite, LatentAttention)
    assert lite.query_rank is None


def test_compressed_entries_grow_by_whole_blocks() -> None:
    spec = model("deepseek-v4-flash")
    ratios = [layer.mixer.ratio for layer in spec.layers if isinstance(layer.mixer, CompressedAttention)]
    assert (ratios.count(0), ratios.count(4), ratios.count(128)) == (2, 21, 20)
    vector = 512 * 2
    assert float(cache_bytes(spec, "bf16", 1, 127)) == vector * (43 * 127 + 21 * 31)
    assert float(cache_bytes(spec, "bf16", 1, 1280)) == vector * (43 * 128 + 21 * 320 + 20 * 10)


def test_the_last_layers_of_gemma_4_read_an_earlier_cache() -> None:
    layers = ["sliding_attention", "full_attention"] * 4
    config = {**SIZES, "model_type": "gemma4_text", "layer_types": layers, "hidden_size_per_layer_input": 0}
    spec = read_config({**config, "num_kv_shared_layers": 2, "head_dim": 16, "global_head_dim": 32})
    kept = [isinstance(layer.mixer, Attention) and layer.mixer.keeps_cache for layer in spec.layers]
    assert kept == [True] * 6 + [False] * 2
    assert bytes_per_token(spec, "bf16") == 2 * 2 * 2 * (3 * 16 + 3 * 32)


def test_experts_stand_where_the_config_says() -> None:
    def sparse(**more: Any) -> list[int]:
        config = {**SIZES, "model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2, **more}
        layers = read_config({"moe_intermediate_size": 32, **config}).layers
        return [index for index, layer in enumerate(layers) if isinstance(layer.feed_forward, MoE)]

    assert sparse() == list(range(8))
    assert sparse(mlp_only_layers=[0, 2]) == [1, 3, 4, 5, 6, 7]
    assert sparse(decoder_sparse_step=2) == [1, 3, 5, 7]
    assert sparse(first_k_dense_replace=3) == [3, 4, 5, 6, 7]
    assert sparse(moe_layer_freq=[0, 1] * 4) == [1, 3, 5, 7]
    assert sparse(moe_layers_enum="1,2") == [1, 2]
    assert sparse(mlp_layer_types=["dense"] * 7 + ["sparse"]) == [7]
    with pytest.raises(ConfigError, match=r"must not exceed the number of experts; got 9 of 4"):
        sparse(num_experts_per_tok=9)


def test_an_unknown_llama_is_read_with_a_note_and_others_say_what_is_missing() -> None:
    spec = read_config({**SIZES, "model_type": "brand_new"})
    assert same_model(spec, read_config({**SIZES, "model_type": "llama"}))
    assert "'brand_new' is not known here; it is read as if it were llama" in spec.notes[0]
    listed = ["full_attention", "sliding_attention"] * 4
    assert windows(read_config({**SIZES, "model_type": "brand_new", "layer_types": listed})) == [None, 16] * 4
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    assert "as if it were qwen3_moe" in read_config({**SIZES, **experts, "model_type": "brand_new"}).notes[0]
    with pytest.raises(
        ConfigError, match=r"must state num_attention_heads, intermediate_size; they are missing"
    ):
        read_config(
            {key: SIZES[key] for key in ("hidden_size", "num_hidden_layers", "vocab_size")}
            | {"model_type": "x"}
        )
    for key in ("rescale_every", "qk_dim_factor", "zero_expert_num", "num_mem_blocks"):
        with pytest.raises(ConfigError, match=f"layers behind {key} cannot be counted"):
            read_config({**SIZES, "model_type": "rwkv", key: 6})
    with pytest.raises(ConfigError, match="layers behind ssm_cfg cannot be counted for the model type 'x'"):
        read_config({**SIZES, "model_type": "x", "ssm_cfg": {}})


def test_towers_are_a_part_of_the_total_and_unknown_ones_are_said() -> None:
    spec = model("gemma-3-27b")
    assert [(tower.name, tower.parameters) for tower in spec.towers] == [("vision encoder", 423_060_336)]
    assert count(spec).total - count(spec).active == 423_060_336
    strange = read_config(
        {"text_config": {**SIZES, "model_type": "llama"}, "vision_config": {"model_type": "new"}}
    )
    assert strange.towers[0].parameters is None
    assert any("vision encoder's own parameters are not counted" in note for note in strange.notes)


def test_every_row_of_the_table_has_a_source_and_a_date() -> None:
    rows = (FOLDER / "model_types.csv").read_text().splitlines()[1:]
    assert len(rows) == len(FAMILIES)
    assert all("https://" in row and row.endswith("2026-11-29") for row in rows)


@pytest.mark.parametrize("id", list(TABLES))
def test_a_config_survives_json(id: str) -> None:
    assert read_config(json.loads(json.dumps(TABLES[id]))) == read_config(TABLES[id])


def test_hunyuans_numbers_by_layer_must_agree() -> None:
    config = {**SIZES, "model_type": "hunyuan_v1_moe", "num_experts": 4, "moe_topk": [2] * 8}
    part = read_config({**config, "num_shared_expert": [2] * 8}).layers[0].feed_forward
    assert isinstance(part, MoE)
    assert part.shared is not None
    assert (part.experts_per_token, part.shared.intermediate_size) == (2, 2 * 96)
    with pytest.raises(
        ConfigError, match=r"num_experts_per_tok must be the same in every layer; got 2 numbers"
    ):
        read_config({**config, "moe_topk": [1, 2] * 4})


def test_lings_flags_give_norms_and_biases() -> None:
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    plain = read_config({**SIZES, **experts, "model_type": "bailing_moe"})
    flagged = {"use_qk_norm": True, "moe_router_enable_expert_bias": True, "use_qkv_bias": True}
    more = count(read_config({**SIZES, **experts, **flagged, "model_type": "bailing_moe_v2"})).total
    heads = plain.layers[0].attention
    assert more - count(plain).total == 8 * (2 * heads.head_dim + 4 + heads.qkv_features)


def test_attention_and_a_state_space_side_by_side_keep_a_cache_and_a_state() -> None:
    state = {"mamba_d_ssm": 64, "mamba_n_heads": 8, "mamba_d_state": 16, "mamba_d_conv": 4}
    config = {**SIZES, **state, "model_type": "falcon_h1"}
    spec = read_config(config)
    assert (spec.attention, spec.num_layers) == ("hybrid", 8)
    assert bytes_per_token(spec, "bf16") == 8 * 2 * 2 * 16 * 2
    assert state_bytes(spec) == 8 * (2 * 3 * (64 + 2 * 16) + 4 * 64 * 16)
    with pytest.raises(ConfigError, match="mamba_n_heads must divide mamba_d_ssm; got 7 and 64"):
        read_config({**config, "mamba_n_heads": 7})
    with pytest.raises(ConfigError, match="mamba_proj_bias and projectors_bias must be equal"):
        read_config({**config, "projectors_bias": True})


def test_a_gated_recurrence_keeps_a_value_a_channel() -> None:
    config = {**SIZES, "model_type": "recurrent_gemma", "attention_window_size": 16, "conv1d_width": 4}
    spec = read_config(config)
    assert spec.mixers == {"lru": 6, "gqa": 2}
    assert state_bytes(spec) == 6 * (2 * 3 * 64 + 4 * 64)
    assert float(cache_bytes(spec, "bf16", 1, 1000)) == 16 * bytes_per_token(spec, "bf16")
    with pytest.raises(ConfigError, match=r"block_types must name recurrent and attention alone; got conv"):
        read_config({**config, "block_types": ["conv"]})
    with pytest.raises(ConfigError, match="must divide lru_width; got 4 and 65"):
        read_config({**config, "lru_width": 65})


def test_a_projection_that_is_not_counted_is_said() -> None:
    siglip = {
        "model_type": "siglip_vision_model",
        "hidden_size": 32,
        "intermediate_size": 64,
        "patch_size": 4,
    }
    vision = {**siglip, "num_hidden_layers": 1, "image_size": 8, "vision_use_head": False}
    nested = {"vision_config": vision, "text_config": {**SIZES, "model_type": "gemma"}}
    known, unknown = (read_config({**nested, "model_type": kind}) for kind in ("paligemma", "my_own"))
    sizes = [spec.towers[0].parameters or 0 for spec in (known, unknown)]
    assert sizes[0] - sizes[1] == (32 + 1) * 64
    said = [
        any("projection from the vision encoder" in note for note in spec.notes) for spec in (known, unknown)
    ]
    assert said == [False, True]


@pytest.mark.parametrize(("outer", "text"), [("glm4v_moe", "glm4_moe"), ("glm4v", "glm4")])
def test_glms_that_see_have_the_text_model_of_those_that_do_not(outer: str, text: str) -> None:
    experts = {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "head_dim": 16}
    sizes = {
        **SIZES,
        **experts,
        "moe_intermediate_size": 32,
        "first_k_dense_replace": 1,
        "attention_bias": True,
    }
    nested = read_config({"model_type": outer, "text_config": {**sizes, "model_type": f"{outer}_text"}})
    assert same_model(nested, read_config({**sizes, "model_type": text}))
    assert not any("not known here" in note for note in nested.notes)
