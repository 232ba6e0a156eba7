"""What may be asked of the comparison of formats, and a record of one: checked field by field."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.catalog.models import model
from core.errors import FormatError, RecordError, RequestError
from core.lab.quality import CACHES, LAYERS, OPERATORS, WEIGHTS, QualityRequest, compared_formats
from core.lab.quality_record import QualityRecord
from core.lab.quality_tensor import schemes, tensor_record
from core.numerics.outlier import outlier_tensor
from tests.lab.quality_example import quality_record


def test_every_format_of_the_engine_is_compared_by_default() -> None:
    request = QualityRequest()
    request.validate()
    assert request.weights == WEIGHTS
    assert request.kv == CACHES
    assert set(CACHES) == set(compared_formats("kv"))
    # Neither a format whose products only some devices have, nor the blocks of a file of another kind.
    left = set(compared_formats("weights")) - set(WEIGHTS) - {"int8-g32"}
    assert set(WEIGHTS) < {*compared_formats("weights"), "none"}
    assert all(name.endswith("-dynamic") for name in left)


def test_the_model_has_the_layers_and_operators_that_may_be_asked_for() -> None:
    assert model("smollm2-135m").num_layers == LAYERS
    assert "down" in OPERATORS


def test_a_request_goes_through_json() -> None:
    request = QualityRequest(weights=("int8",), kv=(), tokens=64, layer=3, operator="qkv")
    assert QualityRequest.from_json(json.loads(json.dumps(request.to_json()))) == request


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("int8", "must be an object; got str"),
        ({"model": "x"}, "no field 'model'"),
        ({"weights": "int8"}, "field 'weights' must be as"),
        ({"weights": [8]}, "field 'weights' must be as"),
        ({"tokens": True}, "field 'tokens' must be as 512"),
        ({"tokens": 5}, "from 16 to 2,048; got 5"),
        ({"layer": 30}, "from 0 to 29; got 30"),
        ({"operator": "<script>"}, "one of qkv, output, gate_up, down"),
        ({"weights": [], "kv": []}, "must be a format to compare"),
        ({"weights": ["fp32"]}, "held against; leave it out"),
        ({"kv": ["int8", "int8"]}, "may be named once; got int8, int8"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(data: object, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        QualityRequest.from_json(data)


def test_formats_that_the_engine_lacks_are_refused() -> None:
    with pytest.raises(FormatError, match="nvfp4"):
        QualityRequest(weights=("nvfp4",)).validate()
    with pytest.raises(FormatError, match="int8-dynamic"):
        QualityRequest(kv=("int8-dynamic",)).validate()


def test_a_record_goes_through_json_and_says_what_its_words_mean() -> None:
    record = quality_record()
    data = record.to_json()
    assert QualityRecord.from_json(data) == record
    assert data["rows"][1]["perplexity"] == pytest.approx(math.exp(data["rows"][1]["nll"]))
    assert data["rows"][0]["tokens_per_s"] == pytest.approx(1 / data["rows"][0]["step_s"][0])
    assert {"kl", "agreement", "perplexity", "sqnr_db", "reference"} <= set(data["definitions"])


def test_a_row_without_times_has_no_rate() -> None:
    row = replace(quality_record().rows[0], step_s=())
    assert row.tokens_per_s is None


def _changed(change: Any) -> dict[str, Any]:
    data = quality_record().to_json()
    change(data)
    return data


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d.pop("schema"), "'schema'"),
        (lambda d: d.update(version=9), "'version'"),
        (lambda d: d.update(rows=[]), "'rows'"),
        (lambda d: d["rows"][0].update(kl=-1), "'rows.0.kl'"),
        (lambda d: d["rows"][0].update(step_s=[0.1]), "'step_s'"),
        (lambda d: d["rows"][0].update(agreement=1.5), "agreement"),
        (lambda d: d["maps"][0].update(of="moods"), "one of weights, inputs, cache"),
        (lambda d: d["maps"][0]["sqnr_db"][0].append(1.0), "rows of 4 decibels"),
        (lambda d: d["maps"][0]["sqnr_db"].__setitem__(0, ["x"] * 4), "rows of 4 decibels"),
        (lambda d: d["maps"][0].update(worst_db=[]), "table of decibels"),
        (lambda d: d["tensor"]["grids"][0].update(scale=0), "scale"),
        (lambda d: d.update(stored_as=["q4_1"]), "two encodings"),
        (lambda d: d.update(created_at="noon"), "created_at"),
    ],
)
def test_a_record_that_does_not_hold_is_refused(change: Any, sentence: str) -> None:
    with pytest.raises(RecordError, match=sentence):
        QualityRecord.from_json(_changed(change))


def test_a_tensor_in_detail() -> None:
    values = outlier_tensor(60.0)
    found = tensor_record(values, 2, "down")
    assert sum(found.counts) == values.size
    assert found.histogram.edges[-1] == 60
    assert [grid.count for grid in found.grids] == [15, 15, 15]
    assert found.grids[0].scale == pytest.approx(60 / 7, rel=0.01)
    assert found.grids[1].scale >= found.grids[2].scale
    by_name = {(s.bits, s.shared_by, s.symmetric): s for s in found.schemes}
    assert len(by_name) == 2 * 5 * 2
    for bits in (8, 4):
        rows = [
            by_name[bits, name, True].sqnr_db for name in ("tensor", "row", "groups of 128", "groups of 32")
        ]
        known = [value for value in rows if value is not None]
        assert known == sorted(known)
    eight = by_name[8, "row", True]
    assert eight.sqnr_db is not None
    assert eight.sqnr_db == pytest.approx(eight.expected_db, abs=0.5)  # anywhere within a step, as supposed
    assert by_name[4, "groups of 32", False].bits_per_weight == 5.0


def test_groups_that_a_row_cannot_hold_are_left_out() -> None:
    assert {s.group for s in schemes(576) if s.granularity == "group"} == {64, 32}
    assert np.isfinite(quality_record().tensor.high)
