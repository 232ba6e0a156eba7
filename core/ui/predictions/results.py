"""The results of recorded experiments and measured servers, as tables."""

from __future__ import annotations

from typing import Final

from core.lab.endpoint.notes import notes
from core.lab.endpoint.record import EndpointRecord
from core.lab.gallery_entry import Entry
from core.lab.quality_record import QualityRecord
from core.lab.serve_record import ServeRecord
from core.lab.speculate_record import SpeculateRecord
from core.lab.split_trial import SplitTrial
from core.ui import prose, table
from core.ui.lab.files import clock
from core.ui.predictions import conditions
from core.ui.table import Blank, Cell
from core.units import MB, format_seconds, significant

_MS: Final = 1e3


def experiment(entry: Entry) -> None:
    """The result of an experiment, its noise, and its conditions."""
    record = entry.record
    if isinstance(record, ServeRecord):
        _served(record)
    elif isinstance(record, QualityRecord):
        _quality(record)
    elif isinstance(record, SplitTrial):
        _split(record)
    elif isinstance(record, SpeculateRecord):
        _speculation(record)
    rows = [("when", clock(entry.created_at)), ("noisy", "; ".join(entry.noisy) or "no")]
    conditions.draw(entry.host, rows, "predictions_record")


def server(record: EndpointRecord) -> None:
    """A measured server: predicted and measured at each concurrency, and what must be said beside it."""
    prose.bullets(notes(record))
    rows: list[tuple[Cell, ...]] = []
    for level in record.levels:
        said, found = level.summary(), record.prediction.at(level.concurrency) if record.prediction else None
        measured = [(said[name] or {}).get("p50") for name in ("ttft_s", "tpot_s")]
        rows.append(
            (
                f"{level.concurrency} at once",
                _in_ms(found.ttft_s if found else None),
                _in_ms(measured[0]),
                _in_ms(found.tpot_s if found else None),
                _in_ms(measured[1]),
                found.output_tokens_per_s if found else Blank.DOES_NOT_APPLY,
                said["output_tokens_per_s"],
                f"{said['answered']} of {said['answered'] + said['failed']}",
            )
        )
    columns = (
        *("requests", "TTFT predicted, ms", "median, ms", "TPOT predicted, ms", "median, ms "),
        *("tokens/s predicted", "tokens/s measured", "answered"),
    )
    table.show(columns, rows, "Predicted and measured at each concurrency")
    trip = record.server.round_trip_s
    others = [
        ("when", clock(record.created_at)),
        ("server", record.server.software or "does not say"),
        ("way to it and back", "unknown" if trip is None else format_seconds(trip)),
        ("measured by", f"{record.client.cpu}, {record.client.cores} cores, {record.client.system}"),
        ("predicted for", record.prediction.machine if record.prediction else "nothing"),
    ]
    conditions.draw(None, others, "predictions_record")


def _in_ms(seconds: float | None) -> Cell:
    return Blank.DOES_NOT_APPLY if seconds is None else seconds * _MS


def _served(record: ServeRecord) -> None:
    table.show(
        ("served", "cache", "steps", "answer tokens", "tokens/s", "as the simulator counts"),
        [
            (
                service.way.policy,
                service.way.cache,
                len(service.steps),
                service.new_tokens,
                service.tokens_per_s,
                _yes(not record.difference(service))
                if record.equal_to_simulator is not None
                else "not asked",
            )
            for service in record.services
        ],
        "The trace in each way",
    )
    prose.small(f"Every request has the same tokens in each way: {_yes(record.equal_outputs)}.")


def _quality(record: QualityRecord) -> None:
    table.show(
        ("weights / cache", "weights, MB", "KL, nats", "same likeliest token, %", "perplexity", "tokens/s"),
        [
            (
                f"{row.weights} / {row.kv}",
                row.weight_bytes / MB,
                row.kl,
                100 * row.agreement,
                row.perplexity,
                Blank.DOES_NOT_APPLY if row.tokens_per_s is None else row.tokens_per_s,
            )
            for row in record.rows
        ],
        "Each pair of formats",
    )
    prose.small(f"On {record.predicted:,} tokens of {record.text_title}, against the same weights in fp32.")


def _split(record: SplitTrial) -> None:
    split = record.split
    prose.bullets(
        [
            f"The same tokens as one process writes: {_yes(split.equal_to_single)}.",
            f"Every exchange as the operator table predicts it: {_yes(split.is_as_predicted)}.",
        ]
    )
    table.show(
        ("exchange", "between", "times", "times predicted", "bytes", "bytes predicted"),
        [
            (
                each.name.replace("_", " "),
                f"{each.ranks} processes, stage {each.stage + 1}",
                each.count,
                Blank.DOES_NOT_APPLY if each.predicted_count is None else each.predicted_count,
                each.message_bytes,
                Blank.DOES_NOT_APPLY if each.predicted_bytes is None else each.predicted_bytes,
            )
            for each in split.collectives
        ],
        "Exchanges, counted and predicted",
    )


def _speculation(record: SpeculateRecord) -> None:
    middle, low, high = record.speed_up
    predicted, tokens = record.formula_speed_up, record.formula_tokens
    faster = f"{significant(middle)} ({significant(low)} to {significant(high)})"
    table.show(
        ("what", "predicted", "measured"),
        [
            ("speed-up", _or_blank(predicted), faster),
            ("tokens a step", _or_blank(tokens), significant(record.tokens_a_step)),
            ("steps as the simulator counts them", "yes", _yes(record.steps_agree)),
        ],
        "With guesses, against without",
    )


def _or_blank(value: float | None) -> str:
    return "–" if value is None else significant(value)


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
