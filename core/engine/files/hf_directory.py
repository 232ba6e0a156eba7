"""Read a model as Hugging Face lays it out: config.json, safetensors, tokenizer.json, chat template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from core.catalog.hf_config import parse_config
from core.engine.files.checkpoint import Checkpoint, check_shapes
from core.engine.files.text import ModelText
from core.engine.files.weight import Weight
from core.errors import CheckpointError

_INDEX: Final = "model.safetensors.index.json"
_SINGLE: Final = "model.safetensors"
_NUMBERS: Final = (torch.float32, torch.bfloat16, torch.float16)
_SPECIAL: Final = ("bos_token", "eos_token", "pad_token", "unk_token")


class SafetensorsFiles:
    """All tensors of a directory, in one file or in shards; mapped, and read when asked for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[str, Any] = {}
        self._home: dict[str, str] = {}
        for file in _weight_files(directory):
            self._files[file] = _open(directory / file)
            self._home |= dict.fromkeys(self._files[file].keys(), file)

    def weight(self, name: str) -> Weight:
        """Give the tensor of this name; a copy, since the file may change while the model runs.

        Raises:
            CheckpointError: it holds anything but finite numbers in a format that is read here.
        """
        tensor = self._files[self._home[name]].get_tensor(name).clone()
        if tensor.dtype not in _NUMBERS:
            found = str(tensor.dtype).removeprefix("torch.")
            raise CheckpointError(
                f"The tensor {name} must be fp32, bf16 or fp16; it is {found}. Use such a checkpoint."
            )
        if not tensor.isfinite().all():
            raise CheckpointError(
                f"The tensor {name} must hold finite numbers; it has a NaN or an infinity. Download "
                "the model again."
            )
        return Weight(tensor)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor."""
        return {
            name: tuple(self._files[file].get_slice(name).get_shape()) for name, file in self._home.items()
        }


def read_directory(directory: Path) -> Checkpoint:
    """Read a Llama-, Qwen- or Mixtral-shaped model from its directory.

    Raises:
        CheckpointError: a file is missing, cut short, or does not fit the config.
        ConfigError: config.json does not describe a model that can be run.
    """
    directory = directory.resolve()  # so that "." has a name
    config_text = _text(directory / "config.json")
    spec = parse_config(config_text, id="custom", name=directory.name, source=directory.name)
    files = SafetensorsFiles(directory)
    check_shapes(files.shapes(), spec, file=directory.name)
    settings = _json(directory / "tokenizer_config.json")
    tokenizer = _tokenizer(directory / "tokenizer.json")
    text = ModelText(tokenizer, _template(directory, settings), _special_tokens(settings))
    configs = (_json(directory / "generation_config.json"), json.loads(config_text))
    return Checkpoint(spec, files, text, _end_tokens(configs, tokenizer, settings))


def _weight_files(directory: Path) -> list[str]:
    if (directory / _INDEX).exists():
        index = _json(directory / _INDEX).get("weight_map")
        if not isinstance(index, dict):
            raise CheckpointError(f"{_INDEX} must map tensors to files; it does not. Download it again.")
        files = sorted({str(file) for file in index.values()})
        if any(Path(file).name != file for file in files):
            raise CheckpointError(f"{_INDEX} must name files beside it; it names others. Download it again.")
        return files
    if not (directory / _SINGLE).exists():
        raise CheckpointError(
            f"{directory.name} must have its weights in {_SINGLE}, or in shards with {_INDEX}; it has "
            "neither. Weights in another form (pytorch_model.bin) are not read: they can run code."
        )
    return [_SINGLE]


def _open(path: Path) -> Any:  # noqa: ANN401 (the library's handle has no types)
    try:
        return safe_open(path, framework="pt")
    except (OSError, SafetensorError) as problem:
        raise CheckpointError(
            f"{path.name} must be a whole safetensors file; opening it failed ({problem}). It may be "
            "missing or cut short: download it again."
        ) from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise CheckpointError(
            f"{path.parent.name} must have a readable {path.name}; it has none. Point to the directory of a "
            "downloaded model."
        ) from None


def _json(path: Path) -> dict[str, Any]:
    """The object in an optional file; empty where there is none."""
    if not path.exists():
        return {}
    try:
        value = json.loads(_text(path))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path.name} must be a JSON object; it is not. Download it again.")
    return value


def _tokenizer(path: Path) -> Tokenizer:
    text = _text(path)
    try:
        return Tokenizer.from_str(text)
    except Exception:  # noqa: BLE001 (the library raises Exception itself)
        raise CheckpointError(f"{path.name} must hold a tokenizer; it does not. Download it again.") from None


def _template(directory: Path, settings: dict[str, Any]) -> str | None:
    """The chat template: a file of its own in new models, a setting (or a list of them) in older ones."""
    file = directory / "chat_template.jinja"
    if file.exists():
        return _text(file)
    template = settings.get("chat_template")
    if isinstance(template, list):
        defaults = (e for e in template if isinstance(e, dict) and e.get("name") == "default")
        template = next(defaults, {}).get("template")
    return template if isinstance(template, str) else None


def _special_tokens(settings: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name in _SPECIAL:
        token = settings.get(name)
        content = token.get("content") if isinstance(token, dict) else token
        if isinstance(content, str):
            found[name] = content
    return found


def _end_tokens(
    configs: tuple[dict[str, Any], ...], tokenizer: Tokenizer, settings: dict[str, Any]
) -> frozenset[int]:
    """The ids that end an answer, wherever the model's files name them."""
    ends: set[int] = set()
    for config in configs:
        value = config.get("eos_token_id")
        ends |= {token for token in (value if isinstance(value, list) else [value]) if isinstance(token, int)}
    named = _special_tokens(settings).get("eos_token")
    token = tokenizer.token_to_id(named) if named else None
    return frozenset(ends if token is None else ends | {token})
