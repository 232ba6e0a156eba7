"""Read a GGUF file: shape, tensors, tokenizer and chat template from the one file.

Reading the lists of 49,152 tokens takes seconds, so what was read is kept as a safetensors file
in the user's cache folder, named for the file's size and time. Blocks are kept as blocks, so the copy
is no larger than the file, and the second load is a memory map.

llama.cpp rotates neighbouring features where Hugging Face rotates the two halves of a head; its
converter permutes the rows of Q and K for that, and this reader puts them back.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from gguf import GGUFReader, ReaderTensor, dequantize
from safetensors import SafetensorError
from tokenizers import Tokenizer
from torch import Tensor

from core.catalog.hf_config import read_config
from core.catalog.model import ModelSpec
from core.engine.files.checkpoint import EMBEDDING, FINAL_NORM, HEAD, Checkpoint, check_shapes
from core.engine.files.gguf_content import Content, Converted, SafetensorsFile
from core.engine.files.text import ModelText, byte_level_tokenizer
from core.engine.files.weight import BLOCK_BYTES
from core.errors import CheckpointError, ConfigError
from core.storage import cache_folder

_VERSION: Final = 1  # of the copy's layout; part of its name
_OUTER: Final = {"token_embd.weight": EMBEDDING, "output_norm.weight": FINAL_NORM, "output.weight": HEAD}
_LAYER: Final = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_CONFIG: Final = {
    "num_hidden_layers": "block_count",
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length",
    "rope_theta": "rope.freq_base",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
}


def read_gguf(path: Path, *, id: str, name: str, source: str) -> Checkpoint:
    """Read a Llama-shaped model from a GGUF file.

    Raises:
        CheckpointError: the file is missing, cut short, of another kind, or does not fit its own config.
    """
    copy = _copy_path(path)
    try:
        return _checkpoint(SafetensorsFile(copy), path, id=id, name=name, source=source)
    except (OSError, SafetensorError, KeyError, ValueError):
        converted = _convert(path)  # there is no copy yet, or it is damaged: make it again
    content: Content = SafetensorsFile(copy) if converted.keep(copy) else converted
    return _checkpoint(content, path, id=id, name=name, source=source)


def _copy_path(path: Path) -> Path:
    try:
        status = path.stat()
    except OSError:
        raise CheckpointError(f"{path.name} must exist and be readable; it is not. Check the path.") from None
    return (
        cache_folder()
        / "models"
        / f"{path.stem}-{status.st_size}-{status.st_mtime_ns}-v{_VERSION}.safetensors"
    )


def _checkpoint(file: Content, path: Path, *, id: str, name: str, source: str) -> Checkpoint:
    spec = read_config(json.loads(file.metadata["config"]), id=id, name=name, source=source)
    check_shapes(file.shapes(), spec, file=path.name)
    text = json.loads(file.metadata["text"])
    codec = ModelText(Tokenizer.from_str(text["tokenizer"]), text["template"], text["special"])
    return Checkpoint(spec, file, codec, frozenset(text["end_tokens"]))


def _convert(path: Path) -> Converted:
    part = "header"
    try:
        reader = GGUFReader(path)
        part = "metadata"
        _require_llama(reader, path)
        config = _config(reader)
        part = "tensors"
        tensors, encodings = _tensors(reader, read_config(config))
        part = "tokenizer"
        text = _text(reader, path)
    except ConfigError as problem:
        raise CheckpointError(f"{path.name} must describe a model that runs here. {problem}") from None
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OSError) as problem:
        raise CheckpointError(
            f"{path.name} must be a whole GGUF file of a Llama-shaped model; its {part} cannot be read. It "
            "may be cut short: download or install it again."
        ) from problem
    metadata = {"config": json.dumps(config), "text": json.dumps(text), "encodings": json.dumps(encodings)}
    return Converted(tensors, metadata)


def _require_llama(reader: GGUFReader, path: Path) -> None:
    family = _value(reader, "general.architecture")
    if family != "llama":  # others name their tensors otherwise, and do not permute Q and K
        raise CheckpointError(
            f"{path.name} must hold a model of the llama architecture; it holds {str(family)[:40]!r}. Use "
            "the model's Hugging Face directory."
        )


def _value(reader: GGUFReader, key: str, default: Any = None) -> Any:  # noqa: ANN401 (a file may hold anything)
    field = reader.get_field(key)
    return default if field is None else field.contents()


def _config(reader: GGUFReader) -> dict[str, Any]:
    """The metadata in the words of a config.json."""
    family = str(_value(reader, "general.architecture"))
    config = {key: _value(reader, f"{family}.{name}") for key, name in _CONFIG.items()}
    # Stored as a 32-bit float, where 1e-5 reads 9.9999997e-06; seven digits give the number that was meant.
    config["rms_norm_eps"] = float(f"{config['rms_norm_eps']:.7g}")
    names = {tensor.name: tensor.shape for tensor in reader.tensors}
    config["vocab_size"] = int(names["token_embd.weight"][1])
    return config | {"model_type": family, "tie_word_embeddings": "output.weight" not in names}


def _text(reader: GGUFReader, path: Path) -> dict[str, Any]:
    tokens = _value(reader, "tokenizer.ggml.tokens")
    kind = _value(reader, "tokenizer.ggml.model")
    if kind != "gpt2":
        raise CheckpointError(
            f"{path.name} must have a byte-level BPE tokenizer (gpt2); it has {str(kind)[:40]!r}. Use the "
            "model's Hugging Face directory."
        )
    tokenizer = byte_level_tokenizer(
        tokens,
        _value(reader, "tokenizer.ggml.merges"),
        _value(reader, "tokenizer.ggml.token_type"),
        str(_value(reader, "tokenizer.ggml.pre", "gpt-2")),
    )
    ids = {name: _value(reader, f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos", "eot")}
    return {
        "tokenizer": tokenizer.to_str(),
        "template": _value(reader, "tokenizer.chat_template"),
        "special": {f"{name}_token": tokens[index] for name, index in ids.items() if index is not None},
        "end_tokens": [index for name, index in ids.items() if name != "bos" and index is not None],
    }


def _tensors(reader: GGUFReader, spec: ModelSpec) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Every tensor under its Hugging Face name, and the encoding of those kept as blocks."""
    tensors: dict[str, Tensor] = {}
    encodings: dict[str, str] = {}
    attention = spec.layers[0].attention
    heads = {"attn_q": attention.num_heads, "attn_k": attention.num_kv_heads}
    for tensor in reader.tensors:
        name, part = _hugging_face_name(tensor.name)
        rows, encoding = _rows(tensor)
        if part in heads:
            rows = unpermute(rows, heads[part])
        tensors[name] = torch.from_numpy(np.array(rows))  # the file's own memory is read-only
        if encoding != "plain":
            encodings[name] = encoding
    return tensors, encodings


def _hugging_face_name(name: str) -> tuple[str, str]:
    if name in _OUTER:
        return _OUTER[name], name
    _, index, part, kind = name.split(".")
    return f"model.layers.{index}.{_LAYER[part]}.{kind}", part


def _rows(tensor: ReaderTensor) -> tuple[np.ndarray, str]:
    """Blocks of the two encodings that kernels take directly, everything else in fp32."""
    kind = tensor.tensor_type.name
    if kind.lower() in BLOCK_BYTES:
        return tensor.data, kind.lower()
    if kind == "F32":
        return tensor.data, "plain"
    return dequantize(tensor.data, tensor.tensor_type), "plain"


def unpermute(rows: np.ndarray, num_heads: int) -> np.ndarray:
    """Undo llama.cpp's order of Q and K rows: pairs of neighbours back to two halves of a head.

    >>> unpermute(np.arange(4).reshape(4, 1), 1).ravel().tolist()
    [0, 2, 1, 3]
    """
    pairs = rows.reshape(num_heads, -1, 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)
