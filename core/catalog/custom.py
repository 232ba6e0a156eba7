"""Models and chips that a visitor brings: a pasted config.json, a data sheet typed in.

They live in the visitor's session under a name of their own, in one immutable ``Own`` record. They
can be saved to a small file and loaded again. A link carries their key and not their numbers, so a
reader of the link is told what is missing.

A model is kept as the part of its config that was read, and read again when it is loaded; a saved
file can therefore never hold a shape that a config could not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from core.catalog.accelerator import Accelerator
from core.catalog.custom_chip import ChipSheet, make_chip
from core.catalog.hf_config import parse_config, read_config
from core.catalog.model import ModelSpec
from core.catalog.plain_text import plain_text
from core.catalog.scenario import OWN_PREFIX
from core.errors import ConfigError, RecordError, ScenarioError, UserError
from core.units import format_gb

SCHEMA: Final = "llm-inference-lab/own"
VERSION: Final = 1
MOST_BYTES: Final = 200_000
#: Models, and chips, that one visitor can keep.
MOST_ENTRIES: Final = 20
LONGEST_NAME: Final = 60
_MOST_CONFIG_BYTES: Final = 50_000
_LONGEST_NOTE: Final = 400
#: Some editors begin a file with it; it is no part of the text.
_BYTE_ORDER_MARK: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class OwnModel:
    """A model from a pasted config: its shape, and the keys of the config that the shape came from."""

    spec: ModelSpec
    config: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class OwnChip:
    """A chip from numbers typed in: the accelerator, and the numbers as they were typed."""

    accelerator: Accelerator
    sheet: ChipSheet


@dataclass(frozen=True, slots=True)
class Own:
    """What a visitor brought, by key; every change makes a new record.

    >>> Own().with_model(pasted_model("my model", '{"model_type": "llama", "hidden_size": 64, '
    ...     '"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}')).keys
    ('own:my-model',)
    """

    models: Mapping[str, OwnModel] = field(default_factory=dict)
    chips: Mapping[str, OwnChip] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all models, then of all chips."""
        return (*self.models, *self.chips)

    def with_model(self, model: OwnModel) -> Own:
        """Add a model; one of the same name is replaced, and another of the same key stays (``model_key``).

        Raises:
            ConfigError: there are as many as may be.
        """
        key = self.model_key(model)
        models = {**self.models, key: replace(model, spec=replace(model.spec, id=key))}
        if len(models) > MOST_ENTRIES:
            raise ConfigError(
                f"You may keep up to {MOST_ENTRIES} models of your own; this is one more. Remove one first."
            )
        return replace(self, models=models)

    def with_chip(self, chip: OwnChip) -> Own:
        """Add a chip; one of the same name is replaced, and another of the same key stays (``chip_key``).

        Raises:
            ScenarioError: there are as many as may be.
        """
        key = self.chip_key(chip)
        chips = {**self.chips, key: replace(chip, accelerator=replace(chip.accelerator, id=key))}
        if len(chips) > MOST_ENTRIES:
            raise ScenarioError(
                f"You may keep up to {MOST_ENTRIES} chips of your own; this is one more. Remove one first."
            )
        return replace(self, chips=chips)

    def model_key(self, model: OwnModel) -> str:
        """The key under which a model is kept: that of its name, with a number where another model has it."""
        return _free_key(model.spec.name, {key: one.spec.name for key, one in self.models.items()})

    def chip_key(self, chip: OwnChip) -> str:
        """The same of a chip."""
        name = chip.accelerator.name
        return _free_key(name, {key: one.accelerator.name for key, one in self.chips.items()})

    def without(self, key: str) -> Own:
        """Remove a model or a chip; an unknown key changes nothing."""
        return Own(
            {name: model for name, model in self.models.items() if name != key},
            {name: chip for name, chip in self.chips.items() if name != key},
        )

    def to_json(self) -> str:
        """The file's text, read back by ``load``."""
        return json.dumps(
            {
                "schema": SCHEMA,
                "version": VERSION,
                "models": [{"name": m.spec.name, "config": dict(m.config)} for m in self.models.values()],
                "chips": [chip.sheet.to_json() for chip in self.chips.values()],
            },
            indent=1,
        )


def pasted_model(name: str, text: str) -> OwnModel:
    """Read a pasted config.json under a visitor's name.

    Raises:
        ConfigError: the name is empty, or the text is not a config that can be counted.
    """
    text = text.removeprefix(_BYTE_ORDER_MARK)
    parse_config(text)  # says what is wrong with the text itself
    config: dict[str, object] = json.loads(text)
    return _model(name, config)


def _model(name: str, config: Mapping[str, object]) -> OwnModel:
    shown = own_name(name)
    if not shown:
        raise ConfigError("A model of your own must have a name; this one has none. Type one.")
    used = _Used(config)
    spec = read_config(used, id=own_key(shown), name=shown, source="a config.json that you pasted")
    kept = {key: config[key] for key in config if key in used.keys_read}
    if len(json.dumps(kept)) > _MOST_CONFIG_BYTES:
        raise ConfigError(
            f"The parts of a config that matter take up to {format_gb(_MOST_CONFIG_BYTES)}; here they take "
            f"{format_gb(len(json.dumps(kept)))}. Leave out long lists and tables."
        )
    # Notes may quote the config, and what it says may not even be printable.
    return OwnModel(replace(spec, notes=tuple(plain_text(note, _LONGEST_NOTE) for note in spec.notes)), kept)


class _Used(Mapping[str, object]):
    """A config that remembers which of its keys were asked for."""

    def __init__(self, config: Mapping[str, object]) -> None:
        self._config, self.keys_read = config, set[str]()

    def __getitem__(self, key: str) -> object:
        self.keys_read.add(key)
        return self._config[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._config)

    def __len__(self) -> int:
        return len(self._config)


def typed_chip(sheet: ChipSheet) -> OwnChip:
    """Make a chip of numbers that a visitor typed.

    Raises:
        ScenarioError: the name is empty, or a number is missing or not believable.
    """
    shown = own_name(sheet.name)
    if not shown:
        raise ScenarioError("A chip of your own must have a name; this one has none. Type one.")
    named = replace(sheet, name=shown)
    return OwnChip(make_chip(named, own_key(shown)), named)


def own_name(name: str) -> str:
    """A visitor's name for something, as it is kept: one line, at most 60 visible characters."""
    return plain_text(name, LONGEST_NAME)


def own_key(name: str) -> str:
    """The key of something named so, for scenarios and links.

    >>> own_key("My  Llama (v2)")
    'own:my-llama-v2'
    """
    words = re.findall(r"\w+", name.casefold())
    return OWN_PREFIX + ("-".join(words)[:LONGEST_NAME] or "unnamed")


def _free_key(name: str, names: Mapping[str, str]) -> str:
    """The key of a name among the names that are kept, by key: its own again, else one that is free.

    >>> _free_key("a-b", {"own:a-b": "a b"}), _free_key("a b", {"own:a-b": "a b"})
    ('own:a-b-2', 'own:a-b')
    """
    kept = next((key for key, one in names.items() if one == name), None)
    first = own_key(name)
    numbered = (f"{first}-{number}" for number in range(2, len(names) + 3))
    return kept or next(key for key in (first, *numbered) if key not in names)


# --- Loading --------------------------------------------------------------------------------------


def load(text: str | bytes) -> Own:
    """Read a saved file.

    Raises:
        RecordError: it is too large, not such a file, of another version, or holds what cannot be.
    """
    data = _parse(text)
    if data.get("schema") != SCHEMA:
        raise _refused("It must be a file of models and chips that this app saved")
    if data.get("version") != VERSION:
        raise _refused(f"It must be of version {VERSION}; this one says {str(data.get('version'))[:20]!r}")
    own = Own()
    try:
        for entry in _entries(data, "models"):
            own = own.with_model(_model(str(entry.get("name", "")), _table(entry.get("config"))))
        for entry in _entries(data, "chips"):
            own = own.with_chip(typed_chip(ChipSheet.from_json(entry)))
    except RecordError:
        raise
    except UserError as problem:
        raise _refused(str(problem).rstrip(".")) from problem
    return own


def _parse(text: str | bytes) -> Mapping[str, Any]:
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if len(raw) > MOST_BYTES:
        raise _refused(f"It may have up to {format_gb(MOST_BYTES)}; this one has {format_gb(len(raw))}")
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        raise _refused("It must be whole JSON; this one is cut short or was changed") from None
    return _table(data)


def _entries(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    values = data.get(name)
    if not isinstance(values, list) or len(values) > MOST_ENTRIES:
        raise _refused(f"Its {name} must be a list of up to {MOST_ENTRIES}")
    return [_table(value) for value in values]


def _table(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _refused(f"It must hold objects with named values; one is a {type(value).__name__}")
    return value


def _refused(why: str) -> RecordError:
    return RecordError(f"This file of models and chips cannot be used. {why}. Save it again from the app.")
