"""Values of a config file, each checked as it is taken: what must hold, what came, what to do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from core.errors import ConfigError

#: Largest believable value of each count; past them a number is a typing error, not a model.
LIMITS: Final[dict[str, int]] = {
    "hidden_size": 2**20,
    "num_hidden_layers": 2_000,
    "num_attention_heads": 8_192,
    "num_key_value_heads": 8_192,
    "head_dim": 8_192,
    "intermediate_size": 2**22,
    "vocab_size": 2**24,
    "max_position_embeddings": 2**30,
    "sliding_window": 2**30,
    "max_window_layers": 2_000,
    "original_max_position_embeddings": 2**30,
}


@dataclass(slots=True)
class Fields:
    """A config's keys with checks. A key that is null counts as absent, as transformers has it.

    Attributes:
        values: the config as it was read.
        notes: sentences gathered on the way, for instance on a default that had to be used.
    """

    values: Mapping[str, object]
    notes: list[str] = field(default_factory=list)

    def count(self, key: str) -> int:
        """A whole number from 1 to its limit that the config must state."""
        found = self.optional_count(key)
        if found is None:
            raise ConfigError(f"The config must state {key}; it is missing or null. Paste the whole file.")
        return found

    def optional_count(self, key: str) -> int | None:
        """The same, or None where the config is silent."""
        value = self.values.get(key)
        if value is None:
            return None
        whole = isinstance(value, int) and not isinstance(value, bool)
        if isinstance(value, float) and value.is_integer():
            value, whole = int(value), True
        if not whole or not isinstance(value, int):
            raise ConfigError(f"{key} must be a whole number; got {_shown(value)}. Correct the config.")
        if not 1 <= value <= LIMITS[key]:
            raise ConfigError(
                f"{key} must be from 1 to {LIMITS[key]:,}; got {_shown(value)}. Correct the config."
            )
        return value

    def count_or(self, key: str, default: int) -> int:
        """The same, or the default of the model type, which is then said in a note."""
        found = self.optional_count(key)
        if found is None:
            self.notes.append(
                f"The config does not state {key}; {default:,}, which transformers assumes for this "
                "model type, is used."
            )
            return default
        return found

    def real(self, key: str, default: float) -> float:
        """A positive, finite number, or the default."""
        value = self.values.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{key} must be a number; got {_shown(value)}. Correct the config.")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not 0 < number < math.inf:  # also false for a NaN
            raise ConfigError(
                f"{key} must be above zero and finite; got {_shown(value)}. Correct the config."
            )
        return number

    def flag(self, key: str, default: bool) -> bool:
        """True or false, or the default."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ConfigError(f"{key} must be true or false; got {_shown(value)}. Correct the config.")
        return value

    def text(self, key: str) -> str | None:
        """A text, or None."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"{key} must be text; got {_shown(value)}. Correct the config.")
        return value

    def table(self, key: str) -> Fields | None:
        """A nested object as fields that share these notes, or None."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ConfigError(f"{key} must be an object; got {_shown(value)}. Correct the config.")
        return Fields(value, self.notes)

    def texts(self, key: str) -> list[str] | None:
        """A list of texts, or None."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ConfigError(f"{key} must be a list of texts; got {_shown(value)}. Correct the config.")
        return value


def _shown(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        # Python refuses to print integers of thousands of digits.
        return f"{value:,}" if abs(value) < 10**18 else f"a number of about 2**{value.bit_length()}"
    if isinstance(value, str | float | bool):
        return repr(value)[:60]
    return f"a {type(value).__name__}"
