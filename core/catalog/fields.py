"""Values of a config file, each checked as it is taken: what must hold, what came, what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
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
    "num_experts": 65_536,
    "num_experts_per_tok": 65_536,
}
#: The limit of counts that are not listed there: ranks, head dimensions, kernels, intervals.
_OTHER_LIMIT: Final = 2**22

#: Other names that config files use for the same thing.
ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "hidden_size": ("n_embd", "d_model", "n_embed", "model_dim"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers", "num_transformer_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "num_query_heads"),
    "num_key_value_heads": ("num_kv_heads", "n_kv_heads", "n_head_kv", "kv_n_heads", "multi_query_group_num"),
    "head_dim": ("attention_head_dim", "kv_channels"),
    "intermediate_size": ("n_inner", "ffn_dim", "ffn_hidden_size", "d_inner"),
    "vocab_size": ("padded_vocab_size",),
    "max_position_embeddings": ("n_positions", "max_seq_len", "max_sequence_length", "seq_length", "n_ctx"),
    "rms_norm_eps": (
        "layer_norm_epsilon",
        "layernorm_epsilon",
        "layer_norm_eps",
        "norm_epsilon",
        "norm_eps",
    ),
    "hidden_act": ("hidden_activation", "activation_function", "mlp_hidden_act", "activation"),
    "num_experts": ("n_routed_experts", "num_local_experts", "moe_num_experts", "num_moe_experts"),
    "num_experts_per_tok": (
        "num_experts_per_token",
        "experts_per_token",
        "moe_top_k",
        "moe_topk",
        "top_k_experts",
        "moe_k",
    ),
    "n_shared_experts": ("num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
    "moe_intermediate_size": ("expert_ffn_hidden_size", "moe_ffn_hidden_size"),
    "num_nextn_predict_layers": ("mtp_num_hidden_layers",),
    "rope_theta": ("rotary_emb_base", "rope_base"),
}
#: Where the text model stands in the config of a model that sees or hears.
TEXT_TABLES: Final = ("text_config", "language_config", "llm_config", "thinker_config")


@dataclass(slots=True)
class Fields:
    """A config's keys with checks. A key that is null counts as absent, as transformers has it.

    Attributes:
        values: the config as it was read; the text model's own table where there is one.
        notes: sentences gathered on the way, for instance on a default that had to be used.
        outer: the table around the text model's; its keys count where the inner one is silent.
        defaults: what the model type assumes for counts that the config does not state.
        layer: a number that stands in a list with one entry a layer is taken for this layer.
    """

    values: Mapping[str, object]
    notes: list[str] = field(default_factory=list)
    outer: Mapping[str, object] = field(default_factory=dict)
    defaults: Mapping[str, int] = field(default_factory=dict)
    layer: int | None = None

    def value(self, key: str) -> object:
        """What the config says under a key or one of its other names; None where it is silent."""
        for table in (self.values, self.outer):
            for name in (key, *ALIASES.get(key, ())):
                found = table.get(name)
                if found is not None:
                    return self._of_layer(found)
        return None

    def _of_layer(self, found: object) -> object:
        if self.layer is None or not isinstance(found, list) or not self.layer < len(found):
            return found
        one = found[self.layer]
        return one if isinstance(one, int | float) and not isinstance(one, bool) else found

    def at(self, layer: int) -> Fields:
        """The same fields for one layer: its entry of per-layer lists, and what is said of it alone.

        ``per_layer_config`` holds, by number, what differs in a layer.
        """
        table = self.table("per_layer_config")
        names = (str(layer), f"{layer:02}", f"{layer:03}")
        own = next((found for name in names if table and (found := table.table(name))), None)
        return replace(self if own is None else self.over(own.values), layer=layer)

    def over(self, values: Mapping[str, object]) -> Fields:
        """The same fields, with these values before their own; those that are null do not count."""
        stated = {key: value for key, value in values.items() if value is not None}
        return replace(self, values=_Overlay(stated, self.values))

    def has(self, key: str) -> bool:
        """Whether the config says anything under this key."""
        return self.value(key) is not None

    def count(self, key: str) -> int:
        """A whole number from 1 to its limit: what the config states, or the model type's default.

        A default is said in a note.

        Raises:
            ConfigError: neither is there, or it is no such number.
        """
        found = self.optional_count(key)
        if found is not None:
            return found
        if key in self.defaults:
            return self.count_or(key, self.defaults[key])
        raise ConfigError(f"The config must state {key}; it is missing or null. Paste the whole file.")

    def optional_count(self, key: str) -> int | None:
        """The same, or None where the config is silent."""
        value = self.value(key)
        return None if value is None else self.whole(key, value, least=1)

    def number_or(self, key: str, default: int) -> int:
        """A whole number from 0 (for what may be switched off), or the model type's or this default.

        The model type's default is said in a note.
        """
        if not self.has(key) and key in self.defaults:
            return self.count_or(key, self.defaults[key])
        return self.quiet_number(key, default)

    def quiet_number(self, key: str, default: int) -> int:
        """The same without a note: for what is in no count."""
        value = self.value(key)
        return self.defaults.get(key, default) if value is None else self.whole(key, value, least=0)

    def whole(self, key: str, value: object, *, least: int) -> int:
        """Check one number of a config.

        Raises:
            ConfigError: it is not whole, or out of range.
        """
        whole = isinstance(value, int) and not isinstance(value, bool)
        if isinstance(value, float) and value.is_integer():
            value, whole = int(value), True
        if not whole or not isinstance(value, int):
            raise ConfigError(f"{key} must be a whole number; got {shown(value)}. Correct the config.")
        most = LIMITS.get(key, _OTHER_LIMIT)
        if not least <= value <= most:
            raise ConfigError(
                f"{key} must be from {least} to {most:,}; got {shown(value)}. Correct the config."
            )
        return value

    def count_or(self, key: str, default: int) -> int:
        """A count, or the default of the model type, which is then said in a note."""
        found = self.optional_count(key)
        if found is None:
            note = (
                f"The config does not state {key}; {default:,}, which transformers assumes for this "
                "model type, is used."
            )
            if note not in self.notes:
                self.notes.append(note)
            return default
        return found

    def counts(self, key: str, *, least: int = 0) -> list[int] | None:
        """A list of whole numbers, or None."""
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, list):
            raise ConfigError(
                f"{key} must be a list of whole numbers; got {shown(value)}. Correct the config."
            )
        return [self.whole(key, item, least=least) for item in value]

    def real(self, key: str, default: float) -> float:
        """A positive, finite number, or the default."""
        value = self.value(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{key} must be a number; got {shown(value)}. Correct the config.")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not 0 < number < math.inf:  # also false for a NaN
            raise ConfigError(f"{key} must be above zero and finite; got {shown(value)}. Correct the config.")
        return number

    def flag(self, key: str, default: bool) -> bool:
        """True or false, or the default."""
        value = self.value(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ConfigError(f"{key} must be true or false; got {shown(value)}. Correct the config.")
        return value

    def text(self, key: str) -> str | None:
        """A text, or None."""
        value = self.value(key)
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"{key} must be text; got {shown(value)}. Correct the config.")
        return value

    def table(self, key: str) -> Fields | None:
        """A nested object as fields that share these notes, or None."""
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ConfigError(f"{key} must be an object; got {shown(value)}. Correct the config.")
        return Fields(value, self.notes)

    def inside(self, *keys: str) -> Fields:
        """These fields, with the keys of nested tables before their own: where old configs nest them."""
        found = [table.values for key in keys if (table := self.table(key))]
        stated = {name: value for table in found for name, value in table.items() if name != "model_type"}
        return self.over(stated)

    def texts(self, key: str) -> list[str] | None:
        """A list of texts, or None."""
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ConfigError(f"{key} must be a list of texts; got {shown(value)}. Correct the config.")
        return value


class _Overlay(Mapping[str, object]):
    """Some keys of a config before the config itself, which is asked only for what is read."""

    def __init__(self, first: Mapping[str, object], then: Mapping[str, object]) -> None:
        self._first, self._then = first, then

    def __getitem__(self, key: str) -> object:
        return self._first[key] if key in self._first else self._then[key]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._first, *self._then)))

    def __len__(self) -> int:
        return len(list(iter(self)))


def text_model(config: Mapping[str, object]) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """The text model's table and the one around it; the config itself and nothing where it is flat.

    >>> text_model({"model_type": "kimi_k25", "text_config": {"model_type": "kimi_k2"}})[0]
    {'model_type': 'kimi_k2'}
    """
    outer: Mapping[str, object] = {}
    for _ in range(2):  # omni models nest once more
        name = next((key for key in TEXT_TABLES if isinstance(config.get(key), Mapping)), None)
        if name is None:
            break
        inner = config[name]
        if isinstance(inner, Mapping):
            config, outer = inner, config
    return config, outer


def shown(value: object) -> str:
    """A value as a message quotes it: short, whatever it is."""
    if isinstance(value, int) and not isinstance(value, bool):
        # Python refuses to print integers of thousands of digits.
        return f"{value:,}" if abs(value) < 10**18 else f"a number of about 2**{value.bit_length()}"
    if isinstance(value, str | float | bool):
        return repr(value)[:60]
    return f"a {type(value).__name__}"
