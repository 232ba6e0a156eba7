"""A format's size is that of its layout: payload and scales."""

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.catalog.formats import FORMATS, STORAGE_FORMATS, NumberFormat, engine_format, number_format
from core.errors import FormatError

ROWS, INPUTS = 576, 1536


@pytest.mark.parametrize(
    ("format_id", "expected_bytes"),
    [
        ("fp32", ROWS * INPUTS * 4),
        ("bf16", ROWS * INPUTS * 2),
        ("fp16", ROWS * INPUTS * 2),
        ("int8", ROWS * INPUTS + ROWS * 2),  # one bf16 scale a row
        ("int8-g32", ROWS * INPUTS + ROWS * 48 * 2),  # an fp16 scale for each 32
        ("int8-dynamic", ROWS * INPUTS + ROWS * 4),  # one fp32 scale a row
        ("int4", ROWS * INPUTS // 2 + ROWS * 48 * 4),  # a bf16 scale and zero for each 32
        ("fp8", ROWS * INPUTS),
        ("fp8-block", ROWS * INPUTS + 5 * 12 * 4),  # 576 rows are five blocks of 128, the last one half
        ("nf4", ROWS * INPUTS // 2 + ROWS * 24 * 4),
        ("nf4-double", ROWS * INPUTS // 2 + ROWS * 24 + 54 * 4),  # 13,824 scales in groups of 256
    ],
)
def test_matrix_bytes_count_payload_and_scales(format_id: str, expected_bytes: int) -> None:
    assert STORAGE_FORMATS[format_id].matrix_bytes(ROWS, INPUTS) == expected_bytes


def test_a_ragged_last_group_has_its_own_scale() -> None:
    assert FORMATS["int4"].matrix_bytes(1, 34) == 17 + 2 * 4
    assert STORAGE_FORMATS["q8_0"].matrix_bytes(1, 34) == 2 * 34  # a GGUF block is stored whole


GGUF = [record for record in STORAGE_FORMATS.values() if record.name.startswith("GGUF ")]


@pytest.mark.parametrize("record", [*GGUF, STORAGE_FORMATS["mxfp4"]], ids=lambda record: record.id)
def test_a_block_has_the_size_that_the_file_format_gives_it(record: NumberFormat) -> None:
    values, block_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[record.id.upper()]]
    assert record.scales[0].inputs == values
    assert record.matrix_bytes(1, values) == block_bytes
    assert record.bits_per_weight == 8 * block_bytes / values


def test_our_groups_of_eight_bits_take_what_the_blocks_of_a_file_take() -> None:
    ours, theirs = STORAGE_FORMATS["int8-g32"], STORAGE_FORMATS["q8_0"]
    assert ours.bits_per_weight == theirs.bits_per_weight == 8.5
    assert ours.matrix_bytes(576, 1536) == theirs.matrix_bytes(576, 1536)


def test_every_kind_of_gguf_block_is_known() -> None:
    assert {"q2_k", "q6_k", "iq1_s", "iq2_xxs", "iq3_s", "iq4_xs", "q8_0"} <= {record.id for record in GGUF}


@given(
    st.sampled_from(list(STORAGE_FORMATS.values())),
    st.integers(1, 4).map(lambda n: 256 * n),
    st.integers(1, 9),
)
def test_a_whole_block_takes_its_bits_and_no_format_takes_less(
    record: NumberFormat, inputs: int, rows: int
) -> None:
    size = int(record.matrix_bytes(rows, inputs))
    assert size >= rows * inputs * record.bits_per_weight / 8
    assert record.matrix_bytes(rows + 1, inputs) > size
    assert size <= rows * inputs * (record.payload_bits + 1) / 8 + 4 * (rows + 1) or record.payload_bits < 4


def test_sizes_are_vectorised() -> None:
    sizes = FORMATS["bf16"].matrix_bytes(np.array([1, 2, 3]), 8)
    assert np.array_equal(sizes, [16, 32, 48])
    for record in STORAGE_FORMATS.values():
        swept = record.matrix_bytes(np.array([1, 5, 300]), np.array([32, 100, 1000]))
        points = [
            float(record.matrix_bytes(rows, inputs)) for rows, inputs in ((1, 32), (5, 100), (300, 1000))
        ]
        assert np.array_equal(np.asarray(swept), points), record.id


def test_unknown_or_unfit_formats_list_the_choices() -> None:
    with pytest.raises(FormatError, match=r"one of the 50 known here; got 'int3'\. Did you mean int8"):
        number_format("int3", "weights")
    with pytest.raises(
        FormatError, match=r"A format for kv must be one of the 15 known here; got 'nf4'\. See"
    ):
        number_format("nf4", "kv")


def test_the_engine_runs_some_of_them() -> None:
    assert list(FORMATS) == [
        *("fp32", "bf16", "fp16", "int8", "int8-g32", "int8-dynamic", "int4", "fp8-weight-only")
    ]
    assert engine_format("int4", "weights") is number_format("int4", "weights")
    assert engine_format("fp8-dynamic", "weights").engine == "sm89"
    with pytest.raises(FormatError, match=r"must be one of the 9 known here; got 'q4_k'"):
        engine_format("q4_k", "weights")


def test_every_format_has_its_source_and_speaks_in_sentences() -> None:
    for record in STORAGE_FORMATS.values():
        assert record.source.startswith(("https://", "the app's own engine")), record.id
        assert record.meaning.endswith("."), record.id
        assert STORAGE_FORMATS[record.activations].payload_bits >= 16, record.id
        assert record.uses, record.id
