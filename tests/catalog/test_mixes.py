"""Mixed files: recipes in which some tensors of some layers are finer."""

import pytest

from core.analytic.operators import operators
from core.analytic.params import stored_bytes, weight_plan
from core.catalog.formats import STORAGE_FORMATS
from core.catalog.mixes import mixes
from core.catalog.models import catalogue, model
from core.commands.model import find_model


def test_every_mix_is_a_format_made_of_formats() -> None:
    for key, finer in mixes().items():
        assert "weights" in STORAGE_FORMATS[key].uses
        assert finer
        assert all(0 < one.share(32) <= 1 for one in finer)
        assert all(STORAGE_FORMATS[one.format].name.startswith("GGUF") for one in finer)


def test_a_mix_is_the_sum_of_its_layers() -> None:
    """Llama 3.1 8B tensor by tensor, layer by layer."""
    q4, q6 = (STORAGE_FORMATS[key].matrix_bytes for key in ("q4_k", "q6_k"))
    total = float(q4(128_256, 4096)) + float(q6(128_256, 4096)) + 2 * 65 * 4096
    for layer in range(32):
        more = layer < 4 or layer >= 28 or (layer - 4) % 3 == 2
        fine = q6 if more else q4
        total += float(2 * q4(4096, 4096) + q4(1024, 4096) + fine(1024, 4096))
        total += float(2 * q4(14_336, 4096) + fine(4096, 14_336))
    assert stored_bytes(model("llama-3.1-8b"), "q4_k_m") == total


@pytest.mark.parametrize(
    ("mix", "bits"), [("q4_k_m", 4.89), ("q4_k_s", 4.67), ("q5_k_m", 5.70), ("q5_k_s", 5.57)]
)
def test_bits_of_a_parameter_are_those_of_real_files(mix: str, bits: float) -> None:
    found = 8 * stored_bytes(find_model("llama-3.1-8b"), mix) / 8_030_261_248
    assert found == pytest.approx(bits, abs=0.006)


@pytest.mark.parametrize("mix", mixes())
def test_the_table_of_a_mix_keeps_what_the_file_does(mix: str) -> None:
    for spec in catalogue().values():
        table = operators(spec, batch=1, new_tokens=1, context=1, weights=mix, kv="bf16")
        towers = 2 * sum(tower.parameters or 0 for tower in spec.towers)
        assert int(table.total("weight_stored_bytes")) + towers == stored_bytes(spec, mix), spec.id


def test_a_tied_table_is_as_fine_as_the_head() -> None:
    tied, untied = (weight_plan("q4_k_m", model(name)) for name in ("llama-3.2-1b", "llama-3.1-8b"))
    assert (tied.table.id, tied.head.id, tied.shared_table) == ("q6_k", "q6_k", True)
    assert (untied.table.id, untied.head.id, untied.shared_table) == ("q4_k_m", "q6_k", False)
