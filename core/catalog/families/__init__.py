"""Model families: one small function each, from a config to its layers.

``assets/model_types.csv`` says which function reads a model type, and what transformers assumes for it
where a config is silent. Adding a model type is a row; adding a family is a function and a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from core.catalog.assets import read_csv
from core.catalog.families import (
    gemma,
    hybrids,
    latent,
    linear,
    llama,
    mixtures,
    newer,
    newer_mixtures,
    older,
    uneven,
)
from core.catalog.families.family import Decoder, Draft, Family
from core.catalog.fields import Fields

Reader = Callable[[Fields], Decoder]

#: The name in the table -> the function.
READERS: Final[Mapping[str, Reader]] = {
    reader.__name__: reader
    for reader in (
        llama.llama,
        llama.mistral,
        llama.ministral,
        llama.qwen2,
        llama.qwen3,
        llama.phi3,
        llama.qkv_biased,
        llama.glm4,
        llama.glm4v,
        llama.olmo,
        llama.olmo2,
        llama.exaone4,
        llama.cohere,
        llama.cohere2,
        llama.starcoder2,
        llama.nemotron,
        llama.arcee,
        llama.stablelm,
        gemma.gemma,
        gemma.gemma2,
        gemma.gemma3,
        gemma.gemma3n,
        gemma.gemma4,
        older.gpt2,
        older.gpt_bigcode,
        older.gpt_neo,
        older.gpt_neox,
        older.gptj,
        older.phi,
        older.opt,
        older.bloom,
        older.mpt,
        older.falcon,
        older.chatglm,
        older.qwen,
        uneven.openelm,
        uneven.nemotron_nas,
        mixtures.mixtral,
        mixtures.phimoe,
        mixtures.qwen2_moe,
        mixtures.qwen3_moe,
        mixtures.olmoe,
        mixtures.glm4_moe,
        mixtures.dots1,
        mixtures.deepseek_moe,
        mixtures.minimax_m2,
        mixtures.dbrx,
        mixtures.gpt_oss,
        mixtures.llama4,
        mixtures.mimo_v2,
        mixtures.step3p5,
        newer.apertus,
        newer.bitnet,
        newer.nanochat,
        newer.vaultgemma,
        newer.persimmon,
        newer.diffllama,
        newer_mixtures.ernie4_5_moe,
        newer_mixtures.bailing_moe,
        newer_mixtures.hunyuan_moe,
        newer_mixtures.afmoe,
        newer_mixtures.exaone_moe,
        newer_mixtures.flex_olmo,
        newer_mixtures.granite_shared,
        latent.deepseek_v2,
        latent.deepseek_v3,
        latent.deepseek_v4,
        latent.minicpm3,
        hybrids.mamba,
        hybrids.mamba2,
        hybrids.jamba,
        hybrids.nemotron_h,
        hybrids.granite_hybrid,
        hybrids.bamba,
        hybrids.falcon_h1,
        linear.qwen3_next,
        linear.qwen3_5,
        linear.kimi_linear,
        linear.minimax_text,
        linear.recurrent_gemma,
        linear.lfm2,
    )
}


def _family(row: dict[str, str]) -> Family:
    defaults = dict(pair.split("=") for pair in row["defaults"].split())
    return Family(
        read=READERS[row["reader"]],
        defaults={key: int(value) for key, value in defaults.items()},
        tied=row["tied"] == "yes",
        draft=cast(Draft, row["draft"] or "none"),
    )


#: model_type -> how its configs are read.
FAMILIES: Final[Mapping[str, Family]] = {row["model_type"]: _family(row) for row in read_csv("model_types")}
