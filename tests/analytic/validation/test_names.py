"""Names of published tables are recognised, and an unknown one stays unknown."""

import pytest

from core.analytic.validation.names import chip_id, engine, model
from core.catalog.accelerators import accelerators
from core.catalog.assets import read_csv


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A100-80GB SXM (power-limited 330 W)", "a100-sxm-80gb"),
        ("A100 (40GB inferred)", "a100-sxm-40gb"),
        ("H100 80GB (inferred: 15.01 GB x 131.65/s exceeds A100 practical peak)", "h100-sxm-80gb"),
        ("RTX A6000 48GB", "rtx-a6000"),
        ("A10G 24GB", "a10g"),
        ("A10 24GB", "a10"),
        ("NVIDIA GB10 (Dell Pro Max, DGX Spark class)", "gb10-dgx-spark"),
        ("RTX 3090 Ti 24GB", "rtx-3090-ti"),
        ("Apple M4 10-core 32GB (Mac mini)", "apple-m4"),
        ("Apple M5 Max", None),
        ("x86 CPU (model not stated), 4 threads", None),
    ],
)
def test_chips(text: str, expected: str | None) -> None:
    assert chip_id(text) == expected


def test_every_chip_that_is_named_is_in_the_catalogue() -> None:
    named = {row["id"] for row in read_csv("benchmark_names") if row["what"] == "chip"}
    assert named <= set(accelerators())


@pytest.mark.parametrize(
    ("text", "style", "name"),
    [
        ("gpt-fast (torch.compile)", "compiled", "gpt-fast"),
        ("gpt-fast (no --compile)", "eager", "gpt-fast"),
        ("TinyChat FP16 baseline (HF)", "eager", "transformers"),
        ("TinyChat AWQ INT4 g128", "local", "tinychat"),
        ("vLLM + torchao tinygemm int4 g128", "python", "vllm"),
        ("llama.cpp/Ollama Q4_K_M", "local", "llama.cpp"),
        ("xFasterTransformer int4", "cpp", "xfastertransformer"),
    ],
)
def test_engines(text: str, style: str, name: str) -> None:
    found = engine(text)
    assert found is not None
    assert found.name == name or (name == "xfastertransformer" and found.style == "cpp")
    assert found.style == style
    assert engine("a framework of tomorrow") is None


@pytest.mark.parametrize(
    ("name", "hub_id", "expected"),
    [
        ("Llama-3-8B", "meta-llama/Meta-Llama-3-8B", "llama-3.1-8b"),
        ("Mixtral-8x7B-Instruct", "", "mixtral-8x7b-v0.1"),
        ("Yi-6B-Chat", "01-ai/Yi-6B-Chat", "yi-6b"),
        ("something", "Qwen/Qwen3-4B", "qwen3-4b"),
        ("Hermes-3-405B", "NousResearch/Hermes-3-Llama-3.1-405B-FP8", "llama-3.1-405b"),
    ],
)
def test_models(name: str, hub_id: str, expected: str) -> None:
    found = model(name, hub_id)
    assert found is not None
    assert found.id == expected
    assert model("no such model", "nobody/nothing") is None
