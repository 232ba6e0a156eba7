"""`python -m core model` counts a catalogue id, a config file or a folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.__main__ import USER_MISTAKE, main

CONFIG = {
    "model_type": "qwen3",
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 96,
    "vocab_size": 100,
    "tie_word_embeddings": True,
    "max_position_embeddings": 512,
}


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["model", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["model", *arguments]) == USER_MISTAKE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_a_catalogue_model_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "llama-3.1-8b", "--context", "8192", "--batch", "2")
    assert found == {
        "id": "llama-3.1-8b",
        "architecture": "llama",
        "attention": "gqa",
        "params": {
            "total": 8_030_261_248,
            "active": 8_030_261_248,
            "embedding": 525_336_576,
            "towers": 0,
            "extras": {"rotary frequency buffers": 32 * 64},
        },
        "layers": {"gqa": 32},
        "weights": {
            "stored_bytes": 16_060_522_496,
            "streamed_bytes_per_step": 2 * 7_504_924_672 + 2 * 8192,  # two looked-up rows
        },
        "kv": {"bytes_per_token": 131_072, "cache_bytes": 2**31, "state_bytes": 0, "indexer_bytes": 0},
        "notes": found["notes"],
    }


def test_a_hybrid_shows_its_state_and_its_layers(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "qwen3.5-27b", "--context", "1000")
    assert found["attention"] == "hybrid"
    assert found["layers"] == {"linear": 48, "gqa": 16}
    assert found["params"]["towers"] == 460_730_096
    conv, matrix = (48 * 128 + 2 * 16 * 128) * 3, 48 * 128 * 128
    assert found["kv"]["state_bytes"] == 48 * (2 * conv + 4 * matrix)
    assert found["kv"]["cache_bytes"] == 16 * 2 * 4 * 256 * 2 * 1000


def test_experts_and_indexers_are_shown_to_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "deepseek-v3.2", "--context", "4096"]) == 0
    shown = capsys.readouterr().out
    assert "61 mla" in shown
    assert "for one token 38," in shown
    assert "indexer keys" in shown
    assert "Not counted: draft module (MTP) (11,624,027,648 parameters)." in shown


def test_a_config_and_its_folder_are_the_same_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    found = answer(capsys, str(path))
    assert found == answer(capsys, str(tmp_path))
    attention = 64 * (4 + 2 * 2) * 32 + 4 * 32 * 64
    norms = 3 * (2 * 64 + 2 * 32) + 64
    assert found["params"]["total"] == 100 * 64 + 3 * (attention + 3 * 64 * 96) + norms
    assert found["kv"]["bytes_per_token"] == 2 * 3 * 2 * 32 * 2
    assert "The model was made for 512 tokens; 2,048 are counted" in found["notes"][0]


def test_what_a_file_calls_itself_cannot_move_the_cursor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Terminal escapes, halves of characters, text that is turned around."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | {"model_type": "qwen\x1b[31m3\ud800\u202e\n\n"}))
    for command in (["model", str(path)], ["plan", "--model", str(path)], ["model", str(path), "--json"]):
        assert main(command) == 0
        shown = capsys.readouterr().out
        assert shown.isprintable() or all(c.isprintable() or c == "\n" for c in shown)
        shown.encode()
        assert "\\u001b" not in shown
    path.write_text(json.dumps(CONFIG | {"model_type": "\x1b[2J\ud800", "hidden_size": "\x1b[2J\ud800\n"}))
    said = refusal(capsys, str(path))
    said.encode()
    assert "\x1b" not in said


def test_case_does_not_matter(capsys: pytest.CaptureFixture[str]) -> None:
    typed = answer(capsys, "Llama-3.1-8B", "--weights", "FP8", "--kv", "FP8_E4M3")
    assert typed == answer(capsys, "llama-3.1-8b", "--weights", "fp8", "--kv", "fp8_e4m3")


def test_a_person_reads_both_units(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "llama-3.1-8b"]) == 0
    shown = capsys.readouterr().out
    assert "8,030,261,248" in shown
    assert "16.1 GB = 15.0 GiB stored, 15.0 GB read per decode step" in shown


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not json", "A config must be JSON"),
        (b"[]", "A config must be a JSON object; got a list"),
        (b"null", "A config must be a JSON object; got null. Paste"),
        (b"true", "A config must be a JSON object; got true or false"),
        (b"7", "A config must be a JSON object; got a number"),
        (b'"x"', "A config must be a JSON object; got text"),
        (b"\xff\xfe\x00", "A config must be text"),
        (b'{"model_type": "llama"}', "The config must state"),
        (b" " * 1_000_001, "may have up to 1,000,000 bytes"),
    ],
)
def test_a_bad_file_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, message: str
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert message in refusal(capsys, str(path))


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(CONFIG).encode())
    assert answer(capsys, str(path))["architecture"] == "qwen3"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gpt-5"], "or the path of a config.json; got 'gpt-5'. Did you mean gpt2"),
        (["lama-3.1-8b"], "got 'lama-3.1-8b'. Did you mean llama-3.1-8b, "),
        (["gpt-5"], "See all of them with `python -m core list models`."),
        (["/nowhere/config.json"], "there is no '/nowhere/config.json'. Check the path."),
        (["nosuch.json"], "there is no 'nosuch.json'. Check the path."),
        (["x" * 5000], "or the path of a config.json; got 'xxx"),
        (["llama-3.1-8b", "--weights", "int3"], "A format for weights must be one of"),
        (["llama-3.1-8b", "--kv", "gptq-g128"], "A format for kv must be one of"),
        (["llama-3.1-8b", "--batch", "0"], "--batch must be from 1 to 65,536; got 0"),
        (["llama-3.1-8b", "--context", "-1"], "--context must be from 1 to"),
        (
            ["llama-3.1-8b", "--context", "NaN"],
            "--context must be a whole number from 1 to 3,000,000; got 'NaN'",
        ),
        (
            ["llama-3.1-8b", "--batch", "9" * 5000],
            "--batch must be from 1 to 65,536; got a number of 5,000 digits",
        ),
    ],
)
def test_a_wrong_argument_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in refusal(capsys, *arguments)
