"""What this process runs on: names and versions for the record and the fingerprint."""

from __future__ import annotations

import importlib.metadata
import platform

import torch

from core.lab.host import cpu_name, usable_cores
from core.lab.limits import memory_bytes
from core.lab.record_parts import HostRecord


def devices() -> list[str]:
    """The devices that torch can use here."""
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def device_name(device: str) -> str:
    """The accelerator's product name; empty for a CPU, whose name is the host's."""
    return torch.cuda.get_device_name() if device == "cuda" else ""


def driver(device: str) -> str:
    """The CUDA runtime that torch was built for; empty for a CPU."""
    return f"CUDA {torch.version.cuda}" if device == "cuda" else ""


def torch_version() -> str:
    """The version of torch, build included."""
    return importlib.metadata.version("torch")


def device_memory_bytes(device: str) -> int:
    """The memory that software sees on the device."""
    return torch.cuda.mem_get_info()[1] if device == "cuda" else memory_bytes()


def host_record(device: str) -> HostRecord:
    """This machine, as a run record knows it."""
    return HostRecord(
        device=device,
        device_name=device_name(device),
        driver=driver(device),
        cpu=cpu_name(),
        cores=usable_cores(),
        memory_bytes=device_memory_bytes(device),
        system=f"{platform.system()} {platform.release()}",
        python_version=platform.python_version(),
        torch_version=torch_version(),
        threads=torch.get_num_threads(),
    )
