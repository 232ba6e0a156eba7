"""What can be wrong with files and requests; each gives one sentence that says what to do."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file

from core.engine.engine import Engine
from core.engine.files.gguf_file import read_gguf
from core.engine.files.models import embedded_file, open_checkpoint
from core.engine.files.weight import Weight
from core.engine.sampling import Sampling
from core.errors import CheckpointError, ConfigError, FormatError, RequestError, UserError
from core.storage import CACHE_VARIABLE
from tests.engine.embedded import embedded
from tests.engine.forward import random_ids
from tests.engine.small import SmallWeights, small_engine
from tests.engine.tiny import save, tiny_model

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tiny_model("llama, untied, biases, wide heads"), tmp_path_factory.mktemp("model") / "whole")


@pytest.fixture
def directory(whole: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def sentence(problem: pytest.ExceptionInfo[UserError]) -> str:
    """The message, which must be short, end as a sentence does, and hold no line breaks."""
    text = str(problem.value)
    assert text[0].isupper() or text[0].islower()
    assert text.endswith(".")
    assert "\n" not in text
    assert len(text) < 500
    return text


def cut(path: Path, part: float) -> None:
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])


def edit_config(directory: Path, **changes: object) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def without_tensor(directory: Path) -> None:
    path = directory / "model.safetensors"
    tensors = load_file(path)
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, path)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "weights cut short": (lambda d: cut(d / "model.safetensors", 0.6), "may be missing or cut short"),
    "weights almost gone": (lambda d: cut(d / "model.safetensors", 0.0), "may be missing or cut short"),
    "no weights": (lambda d: (d / "model.safetensors").unlink(), "it has neither"),
    "a tensor missing": (without_tensor, "must have the tensor model.layers.1.mlp.up_proj.weight"),
    "another width": (lambda d: edit_config(d, intermediate_size=80), "must have the shape [80, 64]"),
    "more layers": (lambda d: edit_config(d, num_hidden_layers=4), "model.layers.3"),
    "no tokenizer": (lambda d: (d / "tokenizer.json").unlink(), "must have a readable tokenizer.json"),
    "tokenizer cut short": (lambda d: cut(d / "tokenizer.json", 0.5), "must hold a tokenizer"),
    "settings cut short": (lambda d: cut(d / "tokenizer_config.json", 0.5), "must be a JSON object"),
    "no config": (lambda d: (d / "config.json").unlink(), "must have a readable config.json"),
    "config not text": (lambda d: (d / "config.json").write_bytes(b"\xff\xfe\x00"), "readable config.json"),
    "config cut short": (lambda d: cut(d / "config.json", 0.5), "must be JSON"),
    "a missing shard": (
        lambda d: (d / "model.safetensors.index.json").write_text('{"weight_map": {"a": "no.safetensors"}}'),
        "may be missing or cut short",
    ),
    "an index of another kind": (
        lambda d: (d / "model.safetensors.index.json").write_text("{}"),
        "must map tensors to files",
    ),
    "unknown stretching": (
        lambda d: edit_config(d, rope_parameters=None, rope_scaling={"type": "yarn", "factor": 4.0}),
        "must be default, linear or llama3; got 'yarn'",
    ),
}


@pytest.mark.parametrize(("damage", "expected"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_directory_is_refused_in_a_sentence(
    directory: Path, damage: Callable[[Path], object], expected: str
) -> None:
    damage(directory)
    with pytest.raises((CheckpointError, ConfigError)) as problem:
        Engine.load(directory, weights="fp32", kv="fp32")
    assert expected in sentence(problem)


@pytest.mark.parametrize("part", [0.0, 0.001, 0.02, 0.999])
def test_a_gguf_file_that_is_cut_short_is_refused(tmp_path: Path, part: float) -> None:
    embedded()
    path = tmp_path / "model.gguf"
    with embedded_file().open("rb") as file:
        path.write_bytes(file.read(int(embedded_file().stat().st_size * part)))
    with pytest.raises(CheckpointError) as problem:
        Engine.load(path, weights="fp32", kv="fp32")
    said = sentence(problem)
    assert "cannot be read. It may be cut short" in said
    assert not any(word in said for word in ("index", "array", "buffer", "bounds")), "numpy's words"


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"PK" * 4096)
    with pytest.raises(CheckpointError) as problem:
        open_checkpoint(path)
    assert "must be a whole GGUF file" in sentence(problem)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError) as problem:
        open_checkpoint(tmp_path / "gone.gguf")
    assert "must exist and be readable" in sentence(problem)


def test_a_damaged_copy_of_the_gguf_file_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    ids = {"id": "x", "name": "x", "source": "x"}
    name = "model.layers.29.mlp.down_proj.weight"
    expected = read_gguf(embedded_file(), **ids).weights.weight(name).data
    (copy,) = (tmp_path / "models").iterdir()
    size = copy.stat().st_size
    cut(copy, 0.5)
    again = read_gguf(embedded_file(), **ids)
    assert copy.stat().st_size == size
    assert torch.equal(again.weights.weight(name).data, expected)


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CheckpointError) as problem:
        Engine.load("smollm2-135m", weights="int4", kv="bf16")
    text = sentence(problem)
    assert "make run" in text
    assert "requirements-model.txt" in text
    assert "shape-only models run without it" in text


@pytest.mark.parametrize("name", ["gpt-5", "", "/nowhere/at/all", "shape"])
def test_an_unknown_model_is_refused(name: str) -> None:
    with pytest.raises(CheckpointError) as problem:
        open_checkpoint(name)
    assert "must be smollm2-135m, shape:ID" in sentence(problem)


def test_an_unknown_shape_is_refused_with_the_choices() -> None:
    with pytest.raises(ConfigError, match=r"must be one of the \d+ known here; got 'gpt-5'"):
        open_checkpoint("shape:gpt-5")


def test_formats_and_places_that_do_not_exist_are_refused(whole: Path) -> None:
    with pytest.raises(FormatError, match="must be one of the 9 known here; got 'int3'"):
        Engine.load(whole, weights="int3", kv="fp32")
    with pytest.raises(FormatError, match="for kv must be one of fp32, bf16, fp16, int8, int4; got 'fp8'"):
        Engine.load(whole, weights="fp32", kv="fp8")
    with pytest.raises(RequestError, match="must be one of contiguous, paged, none; got 'scattered'"):
        Engine.load(whole, weights="fp32", kv="fp32", cache="scattered")  # type: ignore[arg-type]


def test_a_device_that_is_not_here_is_refused(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(RequestError, match=r"torch finds none\. Choose cpu\."):
        Engine.load(whole, weights="fp32", kv="fp32", device="cuda")


def test_a_model_larger_than_the_free_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=2**30))
    with pytest.raises(RequestError) as problem:
        Engine.load("shape:llama-3.1-8b", weights="bf16", kv="bf16")
    assert "it needs 15.0 GiB and 1.00 GiB are free" in sentence(problem)


def test_requests_outside_the_limits_are_refused(whole: Path) -> None:
    engine = Engine.load(whole, weights="fp32", kv="fp32")
    too_long = random_ids(engine.max_context)
    cases: list[tuple[list[int], int, str]] = [
        ([], 4, "it is empty"),
        (too_long, 4, "must leave room in the model's context of 128 tokens; it has 128"),
        ([1, 300], 4, "must be from 0 to 299"),
        ([-1], 4, "must be from 0 to 299"),
        ([1], 0, "max_tokens must be 1 or more; got 0"),
    ]
    for ids, max_tokens, expected in cases:
        with pytest.raises(RequestError) as problem:
            engine.generate(ids, Sampling(), max_tokens=max_tokens)
        assert expected in sentence(problem)
    with pytest.raises(RequestError, match="1 to 128 tokens of context"):
        engine.measure_prefill(129, repeats=1)


@pytest.mark.parametrize("prompt", [b"bytes", 7, "half a character \ud800"])
def test_a_prompt_that_is_not_text_is_refused(prompt: str) -> None:
    with pytest.raises(RequestError) as problem:
        embedded().encode(prompt, raw=True)
    assert "must be text" in sentence(problem)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_not_numbers_are_refused(directory: Path, value: float) -> None:
    path = directory / "model.safetensors"
    tensors = load_file(path)
    tensors["model.layers.1.mlp.down_proj.weight"][3, 5] = value
    save_file(tensors, path)
    with pytest.raises(CheckpointError) as problem:
        Engine.load(directory, weights="fp32", kv="fp32")
    assert "model.layers.1.mlp.down_proj.weight must hold finite numbers" in sentence(problem)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_logits_that_are_not_numbers_are_noticed_and_said(whole: Path, value: float) -> None:
    engine = Engine.load(whole, weights="fp32", kv="fp32")
    engine.model.final_norm_weight[3] = value
    with pytest.raises(CheckpointError) as problem:
        engine.generate(random_ids(5), Sampling(), max_tokens=3)
    assert "logits must be finite; step 0 gave others" in sentence(problem)


@pytest.mark.parametrize("weights", ["int8", "int8-g32", "int8-dynamic", "int4", "bf16", "fp8-weight-only"])
@pytest.mark.parametrize("name", ["model.layers.1.mlp.down_proj", "lm_head"])
def test_a_weight_that_is_no_number_is_never_rounded_to_one(
    monkeypatch: pytest.MonkeyPatch, name: str, weights: str
) -> None:
    """Whatever the file's reader let through."""
    sound = SmallWeights.weight

    def damaged(self: SmallWeights, asked: str) -> Weight:
        weight = sound(self, asked)
        if asked == f"{name}.weight":
            weight.data[3, 5] = torch.nan
        return weight

    monkeypatch.setattr(SmallWeights, "weight", damaged)
    with pytest.raises(CheckpointError) as problem:
        small_engine(weights=weights, kv="bf16").generate(random_ids(5), Sampling(), max_tokens=3)
    assert "logits must be finite" in sentence(problem)
