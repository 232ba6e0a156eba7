"""Error by layer and operator: the engine's own rounding, held against core.numerics and by hand."""

import math

import numpy as np
import pytest
import torch

from core.engine.files.checkpoint import LAYER_PARTS, Checkpoint
from core.engine.files.models import EMBEDDED, embedded_file, open_checkpoint
from core.engine.files.text import ByteText
from core.engine.quality.layer_error import (
    EACH_ROW,
    KV_PARTS,
    WHOLE,
    ErrorMap,
    _bytes,
    activation_errors,
    head_error,
    layer_matrix,
    rounded,
    weight_errors,
)
from core.errors import CheckpointError
from core.numerics.error import sqnr_by_row_db, sqnr_db
from core.numerics.quantise import Scheme, quantise
from tests.engine.forward import random_ids
from tests.engine.small import SmallWeights, small_engine, small_spec

pytestmark = pytest.mark.torch

FORMATS = ("fp32", "fp16", "bf16", "int8", "int8-g32", "int8-dynamic", "int4")
SPEC = small_spec()
SMALL = Checkpoint(SPEC, SmallWeights(SPEC), ByteText(256), frozenset())


def test_every_format_on_random_weights_in_its_order() -> None:
    found = weight_errors(SMALL, FORMATS)
    for layer in range(2):
        for column in range(4):
            value = {fmt: found[fmt].sqnr_db[layer][column] or math.inf for fmt in FORMATS}
            assert value["fp32"] == math.inf
            assert value["fp16"] > value["bf16"] > value["int8"] > value["int4"] > 15
            assert value["int8-dynamic"] == pytest.approx(value["int8"], abs=0.2)


@pytest.mark.parametrize(
    ("fmt", "scheme"),
    [
        ("int8", Scheme(kept_in="bf16")),
        ("int8-dynamic", Scheme()),
        ("int4", Scheme(4, "group", 32, symmetric=False, kept_in="bf16")),
    ],
)
def test_the_map_is_what_numerics_says(fmt: str, scheme: Scheme) -> None:
    found = weight_errors(SMALL, (fmt,))[fmt]
    assert found.columns == ("qkv", "output", "gate_up", "down")
    for column, operator in enumerate(LAYER_PARTS):
        values = layer_matrix(SMALL, 1, operator).dense().numpy()
        dense = quantise(values, scheme).dense()
        assert found.sqnr_db[1][column] == pytest.approx(sqnr_db(values, dense), abs=0.01)
        assert found.worst_db[1][column] == pytest.approx(sqnr_by_row_db(values, dense).min(), abs=0.01)


def test_the_embedded_weights_were_rounded_to_four_bits_before() -> None:
    """So int4 keeps them nearly exactly, better than int8, which starts from another grid."""
    try:
        embedded_file()
    except CheckpointError as missing:
        pytest.skip(str(missing))
    checkpoint = open_checkpoint(EMBEDDED)
    assert checkpoint.weights.weight("model.layers.0.mlp.down_proj.weight").encoding == "q4_1"
    matrix = layer_matrix(checkpoint, 0, "output")
    found = ErrorMap(("int4", "int8"))
    exact = matrix.dense()
    found.add([(exact, rounded(matrix, exact, fmt)) for fmt in found.columns])
    four, eight = found.sqnr_db[0]
    assert four is not None
    assert eight is not None
    assert four > eight + 6


def test_the_head_beside_int4_is_int8() -> None:
    assert head_error(SMALL, "int4") == pytest.approx(head_error(SMALL, "int8"), abs=0.2)
    assert head_error(SMALL, "fp32") is None


def test_activations_and_the_cache_by_layer() -> None:
    engine = small_engine()
    inputs, caches = activation_errors(engine, random_ids(30), ("fp32", "bf16", "int8", "int4"))
    assert set(inputs) == {EACH_ROW, WHOLE}
    for found in (*inputs.values(), *caches.values()):
        assert len(found.sqnr_db) == 2
    for layer in range(2):
        for column in range(4):
            fine, coarse = (inputs[name].sqnr_db[layer][column] for name in (EACH_ROW, WHOLE))
            assert fine is not None
            assert coarse is not None
            assert fine > coarse > 10
        for column in range(len(KV_PARTS)):
            values = [caches[kv].sqnr_db[layer][column] for kv in ("fp32", "bf16", "int8", "int4")]
            assert values[0] is None
            known = [value for value in values[1:] if value is not None]
            assert len(known) == 3
            assert known == sorted(known, reverse=True)


def test_an_activation_is_rounded_as_the_dynamic_kernel_rounds_it() -> None:
    rows = torch.randn(4, 64, generator=torch.Generator().manual_seed(3))
    found = ErrorMap(("one",))
    found.add([(rows, _bytes(rows, whole=False))])
    largest = rows.abs().amax(-1, keepdim=True)
    expected = (rows * (127 / largest)).round() * largest / 127
    assert found.sqnr_db[0][0] == pytest.approx(sqnr_db(rows.numpy(), expected.numpy()), abs=0.01)


def test_the_worst_row_is_the_worst() -> None:
    exact = torch.ones(3, 4)
    back = exact.clone()
    back[1] += 0.1
    found = ErrorMap(("one",))
    found.add([(exact, back)])
    assert found.worst_db[0][0] == pytest.approx(20, abs=1e-3)
    assert found.sqnr_db[0][0] == pytest.approx(20 + 10 * np.log10(3), abs=1e-3)


def test_progress_is_told() -> None:
    seen: list[tuple[int, int]] = []
    weight_errors(SMALL, ("int8",), lambda done, of: seen.append((done, of)))
    assert seen == [(0, 2), (1, 2)]
