"""A format's size is that of its layout: payload and scales."""

import numpy as np
import pytest

from core.catalog.formats import FORMATS, number_format
from core.errors import FormatError


@pytest.mark.parametrize(
    ("format_id", "expected_bytes"),
    [
        ("fp32", 576 * 1536 * 4),
        ("bf16", 576 * 1536 * 2),
        ("fp16", 576 * 1536 * 2),
        ("int8", 576 * 1536 + 576 * 2),  # one bf16 scale a row
        ("int8-dynamic", 576 * 1536 + 576 * 4),  # one fp32 scale a row
        ("int4", 576 * 1536 // 2 + 576 * 48 * 4),  # a bf16 scale and zero for each 32
    ],
)
def test_matrix_bytes_count_payload_and_scales(format_id: str, expected_bytes: int) -> None:
    assert FORMATS[format_id].matrix_bytes(576, 1536) == expected_bytes


def test_a_ragged_last_group_has_its_own_scale() -> None:
    assert FORMATS["int4"].matrix_bytes(1, 34) == 17 + 2 * 4


def test_sizes_are_vectorised() -> None:
    sizes = FORMATS["bf16"].matrix_bytes(np.array([1, 2, 3]), 8)
    assert np.array_equal(sizes, [16, 32, 48])


def test_unknown_or_unfit_formats_list_the_choices() -> None:
    with pytest.raises(
        FormatError, match="must be one of fp32, bf16, fp16, int8, int8-dynamic, int4; got 'int3'"
    ):
        number_format("int3", "weights")
    with pytest.raises(FormatError, match="A format for kv must be one of fp32, bf16, fp16; got 'int4'"):
        number_format("int4", "kv")
