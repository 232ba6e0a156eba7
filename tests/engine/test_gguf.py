"""GGUF files that are written here: other encodings, other families, damaged contents."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter, dequantize, quantize
from safetensors import SafetensorError

from core.engine.engine import Engine
from core.engine.files.gguf_file import unpermute
from core.engine.kernels import GroupedByteLinear
from core.errors import CheckpointError
from core.storage import CACHE_VARIABLE
from tests.engine.forward import logits, random_ids, relative_error
from tests.engine.tiny import byte_tokenizer, tiny_model

pytestmark = pytest.mark.torch

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "model.layers": "blk",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def write(path: Path, model: Any, encoding: str, *, family: str = "llama", pre: str = "gpt-2") -> Path:
    """A file as llama.cpp's converter writes it: its names, its order of Q and K rows."""
    config = model.config
    writer = GGUFWriter(path, family)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    add_tokenizer(writer, config.vocab_size, pre)
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        short = llama_name(name)
        values = tensor.numpy()
        for part, count in heads.items():
            if part in short:
                shape = values.shape
                values = values.reshape(count, 2, -1, *shape[1:]).swapaxes(1, 2).reshape(shape)
        kind = GGMLQuantizationType[encoding if values.ndim == 2 else "F32"]
        writer.add_tensor(short, quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def llama_name(name: str) -> str:
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


def add_tokenizer(writer: GGUFWriter, vocab_size: int, pre: str) -> None:
    known = byte_tokenizer().get_vocab(with_added_tokens=True)
    tokens = sorted(known, key=lambda token: known[token])
    tokens.append("Ġa")  # the one merge
    tokens += [f"<unused{index}>" for index in range(vocab_size - len(tokens))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token.startswith("<") and len(token) > 1 else 1 for token in tokens])
    writer.add_token_merges(["Ġ a"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(257)


@pytest.mark.parametrize("encoding", ["F32", "F16", "Q8_0", "Q4_1", "Q4_0"])
def test_any_encoding_gives_the_logits_of_what_it_stores(encoding: str, tmp_path: Path) -> None:
    model = tiny_model("llama, tied, grouped")
    path = write(tmp_path / "tiny.gguf", model, encoding)
    engine = Engine.load(path, weights="fp32", kv="fp32")
    kind = GGMLQuantizationType[encoding]
    for parameter in model.parameters():
        if parameter.ndim == 2:  # transformers gets the numbers that the file can hold
            stored = dequantize(quantize(parameter.data.numpy(), kind), kind)
            parameter.data = torch.from_numpy(np.array(stored))
    ids = random_ids(12)
    with torch.inference_mode():
        expected = model(torch.tensor([ids])).logits[0, -1]
    (found,) = logits(engine, ids, [12])
    assert relative_error(found, expected) < 1e-4
    assert engine.end_tokens == {257}
    assert engine.decode(engine.encode("a b", raw=True)) == "a b"


def file_blocks(path: Path) -> dict[str, np.ndarray]:
    """The raw blocks of a file's matrices by name, Q and K in the order of Hugging Face."""
    heads = {"attn_q": 4, "attn_k": 2}
    raw = {tensor.name: np.array(tensor.data) for tensor in GGUFReader(path).tensors if tensor.data.ndim == 2}
    return {
        name: unpermute(rows, heads[part]) if (part := name.split(".")[-2]) in heads else rows
        for name, rows in raw.items()
    }


def as_blocks(tensors: tuple[torch.Tensor, ...]) -> np.ndarray:
    """What a kernel keeps, laid out as a file lays it out: a scale, then its 32 bytes."""
    numbers, scale = (tensor.contiguous().view(torch.uint8) for tensor in tensors)
    both = torch.cat((scale.view(*tensors[1].shape, 2), numbers.view(*tensors[1].shape, 32)), dim=-1)
    return both.flatten(1).numpy()


def test_eight_bit_blocks_reach_the_kernels_bit_for_bit(tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.gguf", tiny_model("llama, tied, grouped"), "Q8_0")
    engine, raw = Engine.load(path, weights="int8-g32", kv="fp32"), file_blocks(path)
    assert engine.stored_as == "q8_0"
    for index, block in enumerate(engine.model.blocks):
        gate_up, down = (kernels[0] for kernels in block.feed_forward.kernels().values())
        parts = {
            block.qkv_linear: ("attn_q", "attn_k", "attn_v"),
            block.output_linear: ("attn_output",),
            gate_up: ("ffn_gate", "ffn_up"),
            down: ("ffn_down",),
        }
        for kernel, names in parts.items():
            assert isinstance(kernel, GroupedByteLinear)
            expected = np.concatenate([raw[f"blk.{index}.{name}.weight"] for name in names])
            np.testing.assert_array_equal(as_blocks(kernel.tensors), expected)
    assert isinstance(engine.model.head, GroupedByteLinear)
    for tensors in (engine.model.head.tensors, engine.model.table.tensors):
        np.testing.assert_array_equal(as_blocks(tensors), raw["token_embd.weight"])
    assert engine.model.head.tensors[0].data_ptr() == engine.model.table.tensors[0].data_ptr()


def test_the_file_is_read_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "tiny.gguf", tiny_model("llama, tied, grouped"), "Q4_1")
    Engine.load(path, weights="fp32", kv="fp32")

    def fail(*_: object) -> GGUFReader:
        raise AssertionError("the file was parsed a second time")

    monkeypatch.setattr("core.engine.files.gguf_file.GGUFReader", fail)
    Engine.load(path, weights="int4", kv="bf16")


def test_a_disk_without_room_for_the_copy_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    path = write(tmp_path / "tiny.gguf", tiny_model("llama, tied, grouped"), "Q4_1")
    ids = random_ids(12)
    (expected,) = logits(Engine.load(path, weights="int4", kv="fp32"), ids, [12])
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "full"))
    monkeypatch.setattr("core.engine.files.gguf_content.save_file", full)
    (found,) = logits(Engine.load(path, weights="int4", kv="fp32"), ids, [12])
    assert torch.equal(found, expected)
    assert "No space left on device" in caplog.text
    assert not list((tmp_path / "full" / "models").iterdir())


def test_another_family_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.gguf", tiny_model("llama, tied, grouped"), "F32", family="qwen2")
    with pytest.raises(CheckpointError, match="llama architecture; it holds 'qwen2'"):
        Engine.load(path, weights="fp32", kv="fp32")


def test_another_pre_tokenizer_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.gguf", tiny_model("llama, tied, grouped"), "F32", pre="deepseek-llm")
    with pytest.raises(CheckpointError, match="one of smollm, gpt-2; got 'deepseek-llm'"):
        Engine.load(path, weights="fp32", kv="fp32")
