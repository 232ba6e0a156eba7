"""Read a Hugging Face config.json into a ``ModelSpec``.

What the config does not say is never invented: the sizes that a count rests on must be there, and
the few defaults that transformers applies are said in a note. How a family's layers are read
stands in ``families``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from core.catalog.families import FAMILIES
from core.catalog.families.family import Decoder, Family
from core.catalog.families.unknown import unknown_family
from core.catalog.fields import Fields, shown, text_model
from core.catalog.left_out import extras
from core.catalog.model import ModelSpec, RopeScaling
from core.catalog.towers import towers
from core.errors import ConfigError

MAX_CONFIG_CHARACTERS: Final = 1_000_000
_JSON_KINDS: Final[dict[type, str]] = {
    **{type(None): "null", bool: "true or false", int: "a number", float: "a number"},
    **{str: "text", list: "a list"},
}
#: The context of a model that states none: state spaces have no longest one.
UNBOUNDED: Final = 2**31


def parse_config(text: str, *, id: str = "custom", name: str | None = None, source: str = "") -> ModelSpec:
    """Read the text of a config.json.

    Raises:
        ConfigError: it is not JSON, not an object, or not a model that can be counted; one sentence.

    >>> parse_config("[]")
    Traceback (most recent call last):
    core.errors.ConfigError: A config must be a JSON object; got a list. Paste the whole config.json.
    """
    if len(text) > MAX_CONFIG_CHARACTERS:
        raise ConfigError(
            f"A config may have up to {MAX_CONFIG_CHARACTERS:,} characters; this one has {len(text):,}. "
            "Paste a config.json, not weights or a tokenizer."
        )
    try:
        config = json.loads(text)
    except RecursionError:
        raise ConfigError(
            "A config must not be nested hundreds of levels deep; this one is. Paste the whole config.json."
        ) from None
    except ValueError as problem:
        where = f" (line {problem.lineno})" if isinstance(problem, json.JSONDecodeError) else ""
        raise ConfigError(
            f"A config must be JSON; this text is not{where}. Paste the whole config.json."
        ) from None
    return read_config(config, id=id, name=name, source=source)


def read_config(
    config: Mapping[str, object], *, id: str = "custom", name: str | None = None, source: str = ""
) -> ModelSpec:
    """Turn a config into a model's shape; null counts as absent.

    Args:
        config: the object in config.json.
        id: the key that the record shall carry.
        name: the name it shall carry; the id where there is none.
        source: where the config comes from.

    Raises:
        ConfigError: a value that is missing, not of its kind, out of range or does not divide.

    >>> sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    >>> spec = read_config({"model_type": "llama", **sizes, "intermediate_size": 96, "vocab_size": 100})
    >>> spec.layers[0].attention.head_dim, spec.attention
    (16, 'mha')
    """
    if not isinstance(config, Mapping):
        raise ConfigError(
            f"A config must be a JSON object; got {_JSON_KINDS.get(type(config), 'another kind')}. Paste the "
            "whole config.json."
        )
    inner, outer = text_model(config)
    fields = Fields(inner, outer=outer)
    model_type, family = _family(fields, outer)
    fields.defaults = family.defaults
    decoder = family.read(fields)
    _note_storage(fields)
    spec = _spec(fields, decoder, model_type, tied=_is_tied(fields, outer, family))
    whole = outer or config
    return replace(
        spec,
        id=id,
        name=name or id,
        source=source,
        towers=towers(whole, spec.hidden_size, fields.notes),
        extras=decoder.extras + extras(spec, family, fields, whole),
        notes=tuple(fields.notes),
    )


def _spec(fields: Fields, decoder: Decoder, model_type: str, *, tied: bool) -> ModelSpec:
    scaling = _rope_scaling(fields)
    return ModelSpec(
        id="",
        name="",
        source="",
        model_type=model_type,
        hidden_size=fields.count("hidden_size"),
        vocab_size=fields.count("vocab_size"),
        tied_embeddings=tied,
        max_context=_max_context(fields, scaling),
        rope_theta=(_rope_table(fields) or fields).real("rope_theta", fields.real("rope_theta", 10_000.0)),
        rms_norm_eps=fields.real("rms_norm_eps", 1e-6),
        rope_scaling=scaling,
        layers=decoder.layers,
        positions=decoder.positions,
        position_rows=decoder.position_rows,
        norm=decoder.norm,
        embedding_norm=decoder.embedding_norm,
        final_norm=decoder.final_norm,
        embedding_size=decoder.embedding_size,
        head_bias=decoder.head_bias,
        per_layer_embedding=decoder.per_layer_embedding,
        others=decoder.others,
    )


def _is_tied(fields: Fields, outer: Mapping[str, object], family: Family) -> bool:
    """The head belongs to the whole model, so the outer config's word counts before the text model's."""
    inner = fields.flag("tie_word_embeddings", family.tied)
    return Fields(outer).flag("tie_word_embeddings", inner)


def _family(fields: Fields, outer: Mapping[str, object]) -> tuple[str, Family]:
    """The family of the text model; of the config around it where that one is not known."""
    names = [fields.values.get("model_type"), outer.get("model_type")]
    stated = [name for name in names if isinstance(name, str)]
    for name in names:
        if name is not None and not isinstance(name, str):
            raise ConfigError(f"model_type must be text; got {shown(name)}. Correct the config.")
    for known in stated:
        if known in FAMILIES:
            return known, FAMILIES[known]
    like, family = unknown_family(fields, stated[0] if stated else None)
    return (stated[0] if stated else like)[:60], family


def _rope_table(fields: Fields) -> Fields | None:
    """The table of rope settings: "rope_parameters" in new files, "rope_scaling" in older ones."""
    return fields.table("rope_parameters") or fields.table("rope_scaling")


def _rope_scaling(fields: Fields) -> RopeScaling | None:
    table = _rope_table(fields)
    kind = (table.text("rope_type") or table.text("type")) if table else None
    if table is None or kind in {None, "default"}:
        return None
    factor = table.real("factor", 1.0)
    low, high = table.real("low_freq_factor", 1.0), table.real("high_freq_factor", 4.0)
    banded = kind == "llama3"
    scaling = RopeScaling(
        kind=str(kind)[:40],
        factor=factor,
        original_context=table.optional_count("original_max_position_embeddings"),
        low_frequency_factor=low if banded else None,
        high_frequency_factor=high if banded else None,
    )
    fields.notes.append(
        f"Positions are stretched {factor:g} times ({scaling.kind}); no size or speed depends on that."
    )
    return scaling


def _max_context(fields: Fields, scaling: RopeScaling | None) -> int:
    stated = fields.optional_count("max_position_embeddings") or fields.optional_count("model_max_length")
    longest = stated or fields.defaults.get("max_position_embeddings", UNBOUNDED)
    if scaling and scaling.original_context:
        longest = max(longest, int(min(scaling.factor * scaling.original_context, 2**31)))
    return longest


def _note_storage(fields: Fields) -> None:
    table = fields.table("quantization_config")
    if table is not None:
        method = str(table.text("quant_method") or "a method it does not name")[:40]
        fields.notes.append(
            f"The config's own weights are stored quantised ({method}); sizes here are those of the "
            "format you choose."
        )
