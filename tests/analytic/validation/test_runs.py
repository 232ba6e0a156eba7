"""A published row becomes a run, or says why it cannot."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analytic.validation.runs import Skipped, parse, published_runs
from core.analytic.validation.workload import workload
from core.errors import ConfigError, UserError
from tests.analytic.validation.rows import ROW


def test_most_published_rows_can_be_used() -> None:
    found = published_runs()
    assert len(found.runs) >= 355
    assert len(found.runs) + len(found.skipped) == 384
    assert len({run.source for run in found.runs}) >= 30
    assert all(row.why for row in found.skipped)


def test_a_row_is_read_with_its_conditions() -> None:
    (run,) = parse([ROW]).runs
    assert (run.model.id, run.chip.id, run.engine.style) == ("llama-3.1-8b", "h100-sxm-80gb", "python")
    assert (run.batch, run.devices, run.weight_bits, run.kv_bits) == (1, 1, 16, 16)
    assert run.year == pytest.approx(2025.5)
    assert not run.prefill
    assert parse([{**ROW, "metric": "ttft_ms"}]).runs[0].prefill


def test_the_largest_batch_is_left_open() -> None:
    assert parse([{**ROW, "batch": "max", "metric": "output_tok_s_total"}]).runs[0].batch is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "Mystery-9B", "hf_id": ""}, "the shape of Mystery-9B is not in the catalogue"),
        ({"hardware": "abacus"}, "no data sheet of abacus"),
        ({"framework": "frobnicate"}, "the framework frobnicate"),
        ({"batch": "<=256"}, "only a bound of the batch"),
        ({"batch": "server"}, "the batch is not a number"),
        ({"batch": "rps=4"}, "the batch is not a number"),
        ({"batch": "max", "input_len": ""}, "the batch and the lengths are not stated"),
        ({"metric": "ttft_ms", "input_len": "100-200"}, "the length of the prompt is not stated"),
        ({"output_len": ""}, "the length of the answer is not stated"),
        ({"value": "nan"}, "the value is not a number above zero"),
        ({"value": "-3"}, "the value is not a number above zero"),
        ({"weight_bits": ""}, "the width of the weights is not stated"),
        ({"framework": "gpt-fast speculative"}, "speculative decoding"),
        ({"pp": "4"}, "pipeline parallelism"),
        ({"batch": "1e300", "value": "1e13"}, "no deployment has such numbers: batch, value"),
        ({"kept_out": "a misprint"}, "a misprint"),
        ({"notes": "host-bound, exclude from fits"}, "its own notes keep it out"),
    ],
)
def test_what_cannot_be_used_says_why(change: dict[str, str], reason: str) -> None:
    found = parse([{**ROW, **change}])
    assert found.runs == ()
    (skipped,) = found.skipped
    assert isinstance(skipped, Skipped)
    assert skipped.why.startswith(reason)


def test_a_file_without_the_columns_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,model\n1,llama\n")
    with pytest.raises(ConfigError, match="missing: hardware"):
        published_runs(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        published_runs(tmp_path / "absent.csv")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError):
        published_runs(path)


cells = st.one_of(
    st.sampled_from(
        ["", "0", "1", "8", "-1", "nan", "inf", "1e300", "max", "<=4", "vLLM", "H100", "é", "1,5"]
    ),
    st.text(max_size=12),
    st.none(),
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from([*ROW, "kept_out", "more"]), cells, max_size=5))
def test_any_row_is_a_run_or_a_reason(change: dict[str, str | None]) -> None:
    found = parse([{**ROW, **change}])  # type: ignore[dict-item]
    assert len(found.runs) + len(found.skipped) == 1
    for run in found.runs:
        assert 0 < run.value < float("inf")
        try:
            load = workload(run)
        except UserError:
            continue
        assert 0 < load.decode.linear_bytes < float("inf")
