"""Which way of running steps a device has: the factory of the third seam."""

from __future__ import annotations

import os
import shutil
from typing import Final, Literal, get_args

import torch

from core.engine.runner import StepRunner, make_runner
from core.engine.transformer import Transformer
from core.errors import RequestError

RunnerMode = Literal["eager", "compiled", "graphs"]
#: Slots of the cache that a runner keeps for rows that nobody needs.
SCRATCH_SLOTS: Final[dict[RunnerMode, int]] = {"eager": 0, "compiled": 0, "graphs": 1}
_COMPILERS: Final = ("g++", "clang++")


def require_runner(mode: RunnerMode, device: torch.device) -> None:
    """Check that a device can run steps in this way, before a model is loaded.

    Raises:
        RequestError: there is no such way, or the device lacks it.
    """
    if mode not in get_args(RunnerMode):
        raise RequestError(f"The runner must be one of {', '.join(get_args(RunnerMode))}; got {mode!r}.")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise RequestError("The device cuda must exist here; torch finds none. Choose cpu.")
    if mode == "graphs" and device.type != "cuda":
        raise RequestError(
            "The runner graphs replays CUDA graphs, which need a CUDA device; the device is "
            f"{device.type}. Choose eager or compiled."
        )
    if mode == "compiled" and device.type == "cpu" and not _has_compiler():
        raise RequestError(
            f"The runner compiled needs a C++ compiler on a CPU; none of {', '.join(_COMPILERS)} is "
            "installed. Install one, or choose eager."
        )


def choose_runner(mode: RunnerMode, model: Transformer, device: torch.device) -> StepRunner:
    """The runner of a model.

    Raises:
        RequestError: the model cannot be run in this way.
    """
    if mode == "eager":
        return make_runner(model, device)
    from core.engine.compiled_runner import APART, EXPERTS, PRODUCTS, CompiledRunner  # noqa: PLC0415 - seconds

    apart = APART | EXPERTS
    compiled = CompiledRunner(model, apart | PRODUCTS if device.type == "cpu" else apart)
    if mode == "compiled":
        return compiled
    if any(name in EXPERTS for name, _ in model.operators()):
        raise RequestError(
            "The runner graphs must know all launches beforehand; in a mixture of experts a router decides "
            "them on the way. Choose eager or compiled."
        )
    from core.engine.gpu.graph_runner import CudaCapture, GraphRunner  # noqa: PLC0415 - a circle

    return GraphRunner(compiled, CudaCapture())


def _has_compiler() -> bool:
    named = os.environ.get("CXX")
    return any(shutil.which(name) for name in ((named,) if named else _COMPILERS))
