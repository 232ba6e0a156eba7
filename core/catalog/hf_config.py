"""Read a Hugging Face config.json into a ``ModelSpec``.

What the config does not say is never invented: the sizes that a count rests on must be there, and
the few defaults that transformers applies are said in a note. How a family's layers are read
stands in ``families``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from core.catalog.families import FAMILIES, Family
from core.catalog.fields import Fields
from core.catalog.model import ModelSpec, RopeScaling
from core.errors import ConfigError

MAX_CONFIG_CHARACTERS: Final = 1_000_000


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
            f"A config must be a JSON object; got a {type(config).__name__}. Paste the whole config.json."
        )
    fields = Fields(config)
    model_type = fields.text("model_type")
    if model_type not in FAMILIES:
        raise ConfigError(
            f"model_type must be one of {', '.join(FAMILIES)}; got {str(model_type)[:60]!r}. "
            "Other families cannot be counted yet."
        )
    family = FAMILIES[model_type]
    layers = family.layers(fields, family)
    _note_storage(fields)
    scaling = _rope_scaling(fields)
    return ModelSpec(
        id=id,
        name=name or id,
        model_type=model_type,
        hidden_size=fields.count("hidden_size"),
        vocab_size=fields.count_or("vocab_size", family.vocab_size),
        layers=layers,
        tied_embeddings=fields.flag("tie_word_embeddings", family.tied_embeddings),
        max_context=_max_context(fields, family, scaling),
        rope_theta=(_rope_table(fields) or fields).real("rope_theta", fields.real("rope_theta", 10_000.0)),
        rms_norm_eps=fields.real("rms_norm_eps", 1e-6),
        source=source,
        notes=tuple(fields.notes),
        rope_scaling=scaling,
    )


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


def _max_context(fields: Fields, family: Family, scaling: RopeScaling | None) -> int:
    stated = fields.optional_count("max_position_embeddings")
    longest = family.max_context if stated is None else stated
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
