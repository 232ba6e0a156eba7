"""The C++ beside torch: small operators, attention, the library itself; its absence costs only speed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from core.catalog.model import Attention
from core.engine.kv_cache import make_layer
from core.engine.linear import DTYPES
from core.engine.native import attention as native_attention
from core.engine.native import binding as native
from core.engine.native import library as native_library
from core.storage import cache_folder

pytestmark = pytest.mark.torch

#: The library that this process compiled, or found, before any test.
native.kernels()
WHOLE = next((cache_folder() / "kernels").glob(f"{native_library._name()}-*.so"), Path())
needs_compiler = pytest.mark.skipif(native.kernels() is None, reason="These kernels need a C++ compiler.")


@pytest.fixture
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("LLM_LAB_CACHE", str(tmp_path))
    native.kernels.cache_clear()
    yield
    native.kernels.cache_clear()


@pytest.fixture
def _quick_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A compiler that writes the library of before: what is done with libraries does not need a new one."""
    folder = tmp_path_factory.mktemp("compiler")
    compiler = folder / "g++"
    compiler.write_text(f'#!/bin/sh\nfor target; do :; done\ncp "{WHOLE}" "$target"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


def assert_rounded_once(product: Tensor, exact: Tensor) -> None:
    largest = exact.abs().max()
    assert ((product.double() - exact).abs() <= 2**-8 * exact.abs() + 1e-5 * largest).all()


@needs_compiler
@pytest.mark.parametrize("shape", [(1, 576), (3, 576), (20, 64), (2, 9, 64)])
@torch.inference_mode()
def test_the_norm_is_the_norm(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    rows, weight = torch.randn(shape).bfloat16() * 3, torch.randn(shape[-1]).bfloat16()
    wide = rows.double()
    exact = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5) * weight.double()
    ours = native.rms_norm(rows, weight, 1e-5)
    assert ours is not None
    assert_rounded_once(ours, exact)
    assert native.rms_norm(rows.float(), weight.float(), 1e-5) is None, "other formats are torch's"


@needs_compiler
@pytest.mark.parametrize("count", [1, 5, 20])
@torch.inference_mode()
def test_turning_is_turning_and_touches_nothing_else(count: int) -> None:
    torch.manual_seed(count)
    wide = torch.randn(count, 6, 64).bfloat16()
    before = wide.clone()
    angles = torch.rand(count, 1, 32) * 6
    cosine = torch.cat((angles.cos(), angles.cos()), -1).bfloat16()
    sine = torch.cat((-angles.sin(), angles.sin()), -1).bfloat16()
    assert native.turn(wide[:, :4], cosine, sine)
    exact = before[:, :4].double() * cosine + before[:, :4].double().roll(32, -1) * sine
    assert_rounded_once(wide[:, :4], exact)
    assert torch.equal(wide[:, 4:], before[:, 4:])
    assert not native.turn(wide.float()[:, :4], cosine.float(), sine.float())


@pytest.mark.usefixtures("_fresh")
def test_without_a_compiler_torch_multiplies_and_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert native.kernels() is None
    (record,) = caplog.records
    assert "none of g++, clang++, c++ is installed" in record.getMessage()


@pytest.mark.usefixtures("_fresh")
def test_a_compiler_that_fails_leaves_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(command: list[str], **_: object) -> None:
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr("subprocess.run", fails)
    assert native.kernels() is None
    assert caplog.records
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@needs_compiler
@pytest.mark.usefixtures("_fresh")
def test_it_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert native.kernels() is not None
    native.kernels.cache_clear()
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("it was there"))
    assert native.kernels() is not None


def foreign_library(folder: Path) -> bytes:
    """A whole library without one of our functions."""
    source = folder / "other.cpp"
    source.write_text('extern "C" int nothing() { return 0; }')
    library = folder / "other.so"
    subprocess.run(["c++", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return library.read_bytes()


@needs_compiler
@pytest.mark.usefixtures("_fresh", "_quick_compiler")
@pytest.mark.parametrize("damage", ["cut", "garbage", "empty", "foreign", "foreign with its own digest"])
def test_a_damaged_library_is_compiled_anew(tmp_path: Path, damage: str) -> None:
    """In a process of its own: loading a library that was cut short would end it."""
    check = "import sys; from core.engine.native import binding; sys.exit(binding.kernels() is None)"
    library = tmp_path / "kernels" / WHOLE.name
    library.parent.mkdir()
    whole = WHOLE.read_bytes()
    foreign = foreign_library(tmp_path) if damage.startswith("foreign") else b""
    library.write_bytes({"cut": whole[: len(whole) // 2], "garbage": b"x" * 999}.get(damage, foreign))
    if damage == "foreign with its own digest":
        library.rename(library.with_name(library.name[:-19] + native_library._digest(foreign) + ".so"))
    done = subprocess.run([sys.executable, "-c", check], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    (again,) = (tmp_path / "kernels").iterdir()
    assert native_library._digest(again.read_bytes()) == again.stem[-16:]
    assert len(again.read_bytes()) == len(whole)


@needs_compiler
@pytest.mark.usefixtures("_fresh", "_quick_compiler")
def test_libraries_of_older_sources_go_and_those_of_other_processors_stay(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    source = native_library._source()
    old, older = folder / "cpu-kernels-0123456789abcdef.so", folder / "cpu-kernels-1-2-3.so"
    other = folder / f"cpu-kernels-{source}-0123-4567.so"
    for file in (old, older, other):
        file.write_bytes(b"x")
    assert native.kernels() is not None
    assert not old.exists()
    assert not older.exists()
    assert other.exists()


@needs_compiler
@pytest.mark.usefixtures("_fresh", "_quick_compiler")
def test_a_library_that_cannot_be_kept_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("core.storage.write_atomically", full)
    assert native.kernels() is not None
    (record,) = caplog.records
    assert "No space left on device" in record.getMessage()
    assert not (tmp_path / "kernels").exists()


@needs_compiler
@pytest.mark.parametrize(
    ("query", "kv"),
    [("bf16", "bf16"), ("bf16", "int8"), ("fp32", "fp32"), ("fp32", "bf16"), ("fp32", "int8")],
)
@pytest.mark.parametrize("count", [1, 5, 16, 17, 95, 300])
@pytest.mark.parametrize("heads", [(9, 3, 64), (2, 2, 16), (8, 1, 128)])
@torch.inference_mode()
def test_attention_is_that_of_torch_wherever_the_slots_lie(
    heads: tuple[int, int, int], count: int, query: str, kv: str
) -> None:
    torch.manual_seed(count)
    shape, dtype = Attention(*heads), DTYPES[query]
    layer = make_layer(2 * count + 3, shape, kv, torch.device("cpu"))
    slots = torch.randperm(2 * count + 3)[:count]
    layer.write(slots, torch.randn(count, 2 * shape.kv_features).to(dtype) * 2)
    if kv != "int8":  # what nobody wrote must not be read
        others = torch.ones(2 * count + 3, dtype=torch.bool)
        others[slots] = False
        layer.tensors[0][others] = float("nan")
    asked = torch.randn(1, shape.query_features).to(dtype)
    ours = native_attention.attend(asked, layer, shape, slots)
    assert ours is not None
    keys, values = layer.read(slots, torch.float32).double().unsqueeze(1).unbind()
    folded = asked.double().view(1, shape.num_kv_heads, -1, shape.head_dim)
    exact = torch.nn.functional.scaled_dot_product_attention(folded, keys, values).view(1, -1)
    assert (ours.double() - exact).abs().max() <= (2**-8 if query == "bf16" else 1e-5) * exact.abs().max()


@needs_compiler
@torch.inference_mode()
def test_slots_that_follow_one_another_are_the_same_slots() -> None:
    shape = Attention(4, 2, 32)
    layer = make_layer(64, shape, "bf16", torch.device("cpu"))
    layer.write(torch.arange(64), torch.randn(64, 2 * shape.kv_features).bfloat16())
    asked = torch.randn(1, shape.query_features).bfloat16()
    listed = native_attention.attend(asked, layer, shape, torch.arange(7, 50))
    assert listed is not None
    sliced = native_attention.attend(asked, layer, shape, slice(7, 50))
    assert sliced is not None
    assert torch.equal(listed, sliced)


@torch.inference_mode()
def test_formats_and_widths_without_a_kernel_are_left_to_torch() -> None:
    for shape, kv in (
        (Attention(2, 1, 32), "fp16"),
        (Attention(2, 1, 8), "bf16"),
        (Attention(2, 1, 32), "int4"),
    ):
        layer = make_layer(4, shape, kv, torch.device("cpu"))
        asked = torch.randn(1, shape.query_features).bfloat16()
        assert native_attention.attend(asked, layer, shape, slice(0, 4)) is None
