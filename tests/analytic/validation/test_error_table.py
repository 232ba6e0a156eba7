"""The rows that were judged, their errors by class, and the arithmetic of each."""

import doctest
import subprocess
import sys

import numpy as np
import pytest

from core.analytic.validation import error_table as module
from core.analytic.validation import judged as judged_module
from core.analytic.validation import worked_run as worked_module
from core.analytic.validation.error_table import (
    FACETS,
    FEWEST_ROWS,
    UNITS,
    classes,
    error_table,
    errors,
    longest_tails,
    never_published,
    source_words,
    weakest,
)
from core.analytic.validation.judged import JudgedRun, judged_on, judged_runs, published
from core.analytic.validation.runs import METRICS
from core.analytic.validation.worked_run import program, work_out

JUDGED = judged_runs()


@pytest.mark.parametrize("tested", [module, judged_module, worked_module])
def test_examples_hold(tested: object) -> None:
    assert doctest.testmod(tested).failed == 0  # type: ignore[arg-type]


def test_every_row_is_judged_or_its_reason_is_known() -> None:
    known = published()
    assert [row.run.id for row in JUDGED] == [run.id for run in known.runs]
    assert all(skipped.why for skipped in known.skipped)
    assert len(judged_on()) == len("2026-11-30")


def test_errors_are_of_the_published_metric() -> None:
    row = JUDGED[0]
    assert row.percent_error == pytest.approx(100 * abs(row.predicted - row.run.value) / row.run.value)
    assert row.factor == pytest.approx(max(row.predicted / row.run.value, row.run.value / row.predicted))
    assert row.low < row.predicted < row.high


@pytest.mark.parametrize("facet", FACETS)
def test_every_row_has_a_class_and_the_table_counts_it(facet: str) -> None:
    assert all(FACETS[facet](row) for row in JUDGED)
    table = error_table(JUDGED, facet)
    assert sum(each.rows for each in table) >= len(JUDGED)
    if facet != "group":  # groups overlap
        assert sum(each.rows for each in table) == len(JUDGED)
    for each, runs in zip(table, classes(JUDGED, facet).values(), strict=True):
        assert each == errors(each.name, runs)
        assert each.median <= each.p90


def test_a_class_has_the_errors_of_its_rows() -> None:
    found = {each.name: each for each in error_table(JUDGED, "metric")}
    percent = [row.percent_error for row in JUDGED if row.run.metric == "ttft_ms"]
    assert found["TTFT"].median == pytest.approx(np.median(percent))
    assert found["TTFT"].p90 == pytest.approx(np.quantile(percent, 0.9))
    assert found["TTFT"].rows == len(percent)


def test_the_weakest_are_the_worst_of_those_with_rows_enough() -> None:
    worst = weakest(JUDGED, 3)
    assert [each.median for each in worst] == sorted((each.median for each in worst), reverse=True)
    assert all(each.rows >= FEWEST_ROWS for each in worst)
    everything = errors("all", JUDGED)
    assert worst[-1].median > everything.median
    assert longest_tails(JUDGED, 1)[0].p90 >= worst[0].p90


def test_sources_that_differ_have_names_that_differ() -> None:
    urls = {row.run.source for row in JUDGED}
    assert len({source_words(url) for url in urls}) == len(urls)


def test_every_metric_has_a_unit_and_every_gap_its_sentence() -> None:
    assert set(UNITS) == set(METRICS)
    assert len(never_published()) >= 8


# The arithmetic of a row


@pytest.mark.parametrize("row", JUDGED[::7], ids=lambda row: row.run.id)
def test_the_lines_and_the_program_give_what_they_say(row: JudgedRun) -> None:
    worked = work_out(row)
    known: dict[str, float] = {}
    for line in worked.lines:
        known[line.symbol] = eval(line.formula, {"min": min}, known)  # noqa: S307 - our own lines
        assert known[line.symbol] == pytest.approx(line.value, rel=1e-6), line
    assert eval(worked.formula, {}, known) == pytest.approx(worked.predicted, rel=1e-6)  # noqa: S307
    done = subprocess.run(
        [sys.executable, "-c", program(worked)], capture_output=True, text=True, check=True, timeout=60
    )
    assert float(done.stdout) == pytest.approx(worked.predicted, rel=1e-6)


def test_every_metric_and_every_kind_of_pass_is_written_out() -> None:
    rows = {row.run.metric: work_out(row) for row in JUDGED}
    assert set(rows) == set(METRICS)
    symbols = {line.symbol for row in JUDGED for line in work_out(row).lines}
    assert {"matrices", "head", "attention", "links", "layers", "whole", "first_scores"} <= symbols
    eager = next(work_out(row) for row in JUDGED if row.run.engine.style == "eager")
    assert "** (1 / 3)" in next(line for line in eager.lines if line.symbol == "step").formula


def test_the_arithmetic_of_every_row_gives_the_number_that_was_judged() -> None:
    assert [work_out(row).predicted for row in JUDGED] == pytest.approx(
        [row.predicted for row in JUDGED], rel=2e-3
    )


def test_one_user_waits_for_memory_and_a_long_prompt_for_arithmetic() -> None:
    alone = next(row for row in JUDGED if row.batch == 1 and row.run.metric == "decode_tok_s_per_user")
    long = max((row for row in JUDGED if row.run.prefill), key=lambda row: row.run.input_tokens)
    said = {line.symbol: line.meaning for row in (alone, long) for line in work_out(row).lines}
    assert "B/s" in said["matrices"]
    assert "FLOP/s" in said["first_matrices"]
