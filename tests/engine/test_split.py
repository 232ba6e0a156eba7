"""A model split over ranks writes what one process writes, and exchanges what the operator table says."""

import doctest
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from core.analytic.operators import operators
from core.analytic.parallel import ParallelPlan, device_operators, stages
from core.analytic.split_record import SplitRecord
from core.engine.engine import Engine
from core.engine.files.checkpoint import Checkpoint
from core.engine.files.models import EMBEDDED, open_checkpoint
from core.engine.parallel import rank as rank_module
from core.engine.parallel import shares
from core.engine.parallel.rank import Job, Report, work
from core.engine.parallel.shares import ShareOfWeights, share
from core.engine.parallel.split import check_plan, compare, make_job
from core.errors import RecordError, RequestError
from core.lab.split_record import split_from_json, split_to_json
from tests.engine.embedded import embedded
from tests.engine.forward import random_ids
from tests.engine.small import SmallWeights, small_spec
from tests.engine.threaded_ranks import on_threads
from tests.engine.tiny import EXPERTS

pytestmark = pytest.mark.torch

SHAPES: dict[str, dict[str, Any]] = {
    "llama, tied": {"tie_word_embeddings": True},
    "llama, biases, odd vocabulary": {"attention_bias": True, "mlp_bias": True, "vocab_size": 300},
    "qwen2, biases of queries": {"model_type": "qwen2"},
    "qwen3, norms of heads": {"model_type": "qwen3"},
    "mistral, window": {"model_type": "mistral", "sliding_window": 6},
    "qwen3 experts": {"model_type": "qwen3_moe", **EXPERTS, "norm_topk_prob": True},
}
_REDUCES = ("attention_all_reduce", "mlp_all_reduce")
PLANS = [ParallelPlan(tp=2), ParallelPlan(pp=2), ParallelPlan(tp=2, pp=3), ParallelPlan(tp=4, pp=1)]


class RandomWeights(SmallWeights):
    """Random biases and norms too, so that one that is counted twice shows."""

    def weight(self, name: str) -> Any:
        weight = super().weight(name)
        if len(weight.shape) > 1:
            return weight
        generator = torch.Generator().manual_seed(len(name))
        return replace(weight, data=weight.data + 0.3 * torch.randn(weight.shape, generator=generator))


def checkpoint(**changes: object) -> Checkpoint:
    spec = small_spec(num_hidden_layers=4, **changes)
    return Checkpoint(spec, RandomWeights(spec), open_checkpoint("shape:tiny-moe").text, frozenset())


def split(
    engine: Engine, source: Checkpoint, plan: ParallelPlan, patch: pytest.MonkeyPatch, prompt: list[int]
) -> SplitRecord:
    """The comparison, with ranks as threads."""
    job = make_job(engine, "in memory", prompt, plan, max_tokens=7, end_tokens=frozenset())
    patch.setattr(rank_module, "open_checkpoint", lambda _: source)

    def run(job: Job) -> list[Report]:
        return on_threads(job.ranks, lambda rank: work(job, rank), patch)

    return compare(engine, job, run)


def whole_engine(source: Checkpoint, weights: str = "fp32") -> Engine:
    return Engine(source, weights=weights, kv="fp32", cache="contiguous", device=torch.device("cpu"))


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_parts_add_up_to_the_whole_and_exchange_what_is_predicted(
    shape: dict[str, Any], plan: ParallelPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = checkpoint(**shape)
    record = split(whole_engine(source), source, plan, monkeypatch, random_ids(11))
    assert record.equal_to_single
    assert record.logits_error < 1e-5
    assert record.is_as_predicted
    counted = {(each.stage, each.name): each for each in record.collectives}
    told = {name for (_, name), each in counted.items() if each.predicted_count is None}
    assert told == ({"tokens_told"} if plan.pp > 1 else set())
    if plan.tp > 1:
        reduced = [each.count for (_, name), each in counted.items() if name in _REDUCES]
        assert sum(reduced) == 2 * 4 * record.steps  # two all-reduces a layer


def test_every_process_keeps_what_the_table_says_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    source, plan = checkpoint(), ParallelPlan(tp=2)
    record = split(whole_engine(source, "int8"), source, plan, monkeypatch, random_ids(5))
    spec, numbers = source.spec, {"new_tokens": 1, "context": 1, "weights": "int8", "kv": "fp32"}
    part = device_operators(spec, plan, stages(spec, plan)[0], batch=1, **numbers)  # type: ignore[arg-type]
    whole = operators(spec, batch=1, **numbers)  # type: ignore[arg-type]
    assert record.stored_bytes == (int(part.total("weight_stored_bytes")),) * 2
    assert record.single_stored_bytes == int(whole.total("weight_stored_bytes"))


def test_a_wrong_share_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    source = checkpoint(attention_bias=True)
    monkeypatch.setattr(ShareOfWeights, "_cut", lambda self, name, features: (0, features // 2))
    record = split(whole_engine(source), source, ParallelPlan(tp=2), monkeypatch, random_ids(11))
    assert record.logits_error > 0.01


def test_the_embedded_model_split_writes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, plan = embedded(), ParallelPlan(tp=3)
    prompt = engine.encode("Why is the sky blue?", raw=False)
    record = split(engine, open_checkpoint(EMBEDDED), plan, monkeypatch, prompt)
    assert record.equal_to_single
    assert record.logits_error < 1e-4
    assert record.is_as_predicted


@pytest.mark.parametrize("tp", [1, 2, 3, 6])
def test_shares_of_heads_cover_all_of_them(tp: int) -> None:
    assert doctest.testmod(shares).failed == 0
    covered = [share(6, tp, place) for place in range(tp)]
    assert np.concatenate([np.arange(*part) for part in covered]).tolist() == list(range(6))
    kept = [share(2, 2 * tp, place) for place in range(2 * tp)]
    assert kept == [(place // tp, place // tp + 1) for place in range(2 * tp)]


@pytest.mark.parametrize(
    ("plan", "weights", "needed"),
    [
        (ParallelPlan(), "fp32", r"2 to 8 processes; tp 1 times pp 1 are 1"),
        (ParallelPlan(tp=3, pp=3), "fp32", r"2 to 8 processes; tp 3 times pp 3 are 9"),
        (ParallelPlan(tp=3), "fp32", r"must divide the 4 attention heads; 3 does not\. Choose 1, 2 or 4"),
        (ParallelPlan(pp=5), "fp32", r"Each of 5 pipeline stages must hold a layer"),
        (ParallelPlan(tp=2), "int4", r"48 inputs must be whole groups of 32 in int4"),
    ],
)
def test_what_cannot_be_split_is_refused_in_a_sentence(plan: ParallelPlan, weights: str, needed: str) -> None:
    with pytest.raises(RequestError, match=needed + r".*\.$"):
        check_plan(small_spec(num_hidden_layers=4), plan, weights, "cpu")


def test_a_record_comes_back_from_json_and_a_changed_one_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = checkpoint()
    record = split(whole_engine(source), source, ParallelPlan(tp=2), monkeypatch, random_ids(3))
    data = split_to_json(record)
    assert split_from_json(data) == record
    for name, value in (
        ("single_token_ids", [1, 2]),
        ("stored_bytes", [1]),
        ("collectives", [{}]),
        ("tp", 0),
        ("text", None),
    ):
        with pytest.raises(RecordError):
            split_from_json({**data, name: value})
