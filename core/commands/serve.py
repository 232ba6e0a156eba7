"""``python -m core serve``: a seeded trace of requests, served by the engine and held to the simulator."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from core.analytic.batching_policy import POLICIES
from core.analytic.step_record import PREFILL_TOKENS
from core.catalog.formats import FORMATS
from core.commands.arguments import add_formats, whole_number
from core.engine.engine import PAGE_TOKENS, Engine
from core.engine.files.models import EMBEDDED
from core.engine.speculation import NUM_GUESSES
from core.lab.serve_record import ServeRecord, Service
from core.lab.serve_request import (
    CACHES,
    MAX_CACHE_TOKENS,
    MAX_PAGE_TOKENS,
    MAX_PLACES,
    ServeRequest,
    Way,
)
from core.lab.worker.engines import settle
from core.lab.worker.serve_job import serve
from core.simulate.trace import MAX_LENGTH, MAX_REQUESTS, MAX_SEED, MAX_SPACING, SPREADS, Trace
from core.simulate.waste import all_slots
from core.units import format_seconds, significant

_PERCENTILES: Final = (50, 90, 99)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--model", default=EMBEDDED, help=f"{EMBEDDED}, shape:ID (random weights), or a model's directory"
    )
    add_formats(parser, FORMATS)
    parser.set_defaults(weights="fp32", kv="fp32")
    parser.add_argument("--policy", default="continuous", choices=tuple(POLICIES), help="who may join when")
    parser.add_argument("--cache", default="paged", choices=CACHES, help="how keys and values are laid out")
    for name, default, low, high, words in _NUMBERS:
        parser.add_argument(name, type=whole_number(low, high), default=default, metavar="N", help=words)
    parser.add_argument("--spread", default="exponential", choices=SPREADS, help="of lengths and gaps")
    parser.add_argument("--no-share", action="store_true", help="never hold a page for several requests")
    parser.add_argument(
        "--compare", action="store_true", help="serve it with the other cache as well, and compare the tokens"
    )
    parser.add_argument(
        "--speculate", choices=("ngram",), help="guess tokens from the text so far and verify them"
    )
    parser.add_argument(
        "--guesses", type=whole_number(1, 16), default=NUM_GUESSES, metavar="N", help="guessed in a step"
    )
    parser.add_argument("--threads", type=whole_number(1, 1024), help="processor threads")


#: Option, default, limits, and what it is.
_NUMBERS: Final = (
    ("--requests", 8, 1, MAX_REQUESTS, "requests of the trace"),
    ("--prompt-tokens", 24, 1, MAX_LENGTH, "mean length of a prompt"),
    ("--answer-tokens", 16, 1, MAX_LENGTH, "mean length of an answer"),
    ("--spacing", 0, 0, MAX_SPACING, "mean steps between two arrivals; 0 is all at once"),
    ("--shared-tokens", 0, 0, MAX_LENGTH, "tokens that begin every prompt"),
    ("--seed", 0, 0, MAX_SEED, "of the trace"),
    ("--places", 4, 1, MAX_PLACES, "the most requests at once"),
    ("--page-tokens", PAGE_TOKENS, 1, MAX_PAGE_TOKENS, "tokens of a page of the paged cache"),
    ("--step-tokens", PREFILL_TOKENS, 1, PREFILL_TOKENS, "the most tokens that a step computes"),
    ("--cache-tokens", 0, 0, MAX_CACHE_TOKENS, "slots of the cache; 0 is room in every place"),
)


def run(args: Namespace) -> dict[str, Any]:
    """Load the model, serve the trace, and report.

    Raises:
        RequestError, CheckpointError, FormatError, ConfigError: a sentence on what does not hold.
    """
    request = _request(args)
    request.validate()
    engine = Engine.load(args.model, weights=args.weights, kv=args.kv, cache="paged", threads=args.threads)
    settle(engine)
    record = serve(engine, request, _progress)
    first = record.services[0]
    return {
        "model": args.model,
        "weights": args.weights,
        "kv": args.kv,
        "policy": first.way.policy,
        "cache": first.way.cache,
        "requests": request.trace.requests,
        "seed": request.trace.seed,
        "steps": len(first.steps),
        "wall_s": first.wall_s,
        "new_tokens": first.new_tokens,
        "tokens_per_s": first.tokens_per_s,
        "ttft_s": _percentiles([r.ttft_s for r in first.requests]),
        "tpot_s": _percentiles([r.tpot_s for r in first.requests if r.tpot_s is not None]),
        "pages": _pages(record, first),
        "equal_to_simulator": record.equal_to_simulator,
        "difference": "" if request.guesses else record.difference(first),
        "equal_outputs": record.equal_outputs if args.compare else None,
        "noisy": list(record.noisy),
        "notes": [*_notes(request, first), *_rounding_notes(record, args.compare)],
    }


def _notes(request: ServeRequest, service: Service) -> list[str]:
    """Why prompts that begin alike shared nothing."""
    asked = request.trace.shared_tokens
    if not asked or any(step.record.shared_tokens for step in service.steps):
        return []
    if not request.share:
        why = "--no-share lets no request hold another's pages."
    elif service.way.cache == "contiguous":
        why = "a contiguous cache has no pages to share; take --cache paged."
    elif asked < request.page_tokens:
        why = (
            "only whole pages are shared, and the beginning is shorter than a page of "
            f"{request.page_tokens:,} tokens; choose smaller --page-tokens, or more --shared-tokens."
        )
    else:
        why = "no page that held the beginning was ready when another request came; more --spacing helps."
    return [f"Every prompt begins with the same {asked:,} tokens, and none was shared: {why}"]


def _rounding_notes(record: ServeRecord, compared: bool) -> list[str]:
    """Why outputs may differ though nothing is wrong."""
    exact = record.request.weights == record.request.kv == "fp32"
    if not compared or record.equal_outputs or exact:
        return []
    return [
        "Outputs are only sure to be equal in fp32. In fewer bits a prompt that is read in one piece may be "
        "rounded otherwise than one that goes on from shared pages: other kernels compute it."
    ]


def _request(args: Namespace) -> ServeRequest:
    caches = [args.cache, *(cache for cache in CACHES if args.compare and cache != args.cache)]
    return ServeRequest(
        model=args.model,
        weights=args.weights,
        kv=args.kv,
        trace=Trace(
            requests=args.requests,
            prompt_tokens=args.prompt_tokens,
            answer_tokens=args.answer_tokens,
            spread=args.spread,
            spacing=args.spacing,
            shared_tokens=args.shared_tokens,
            seed=args.seed,
        ),
        ways=tuple(Way(args.policy, cache, args.step_tokens) for cache in caches),
        places=args.places,
        page_tokens=args.page_tokens,
        cache_tokens=args.cache_tokens,
        share=not args.no_share,
        guesses=args.guesses if args.speculate else 0,
    )


def _pages(record: ServeRecord, service: Service) -> dict[str, Any]:
    laid_out = record.request.batching(service.way)
    slots = all_slots(service.steps, record.request.arrivals(), laid_out.page_tokens)
    return {
        "page_tokens": laid_out.page_tokens,
        "total": laid_out.num_pages,
        "most_used": max(step.record.pages_used for step in service.steps),
        "empty_share": slots.waste_share,
        "shared_tokens": sum(step.record.shared_tokens for step in service.steps),
        "preempted": sum(step.record.num_preempted for step in service.steps),
    }


def _percentiles(values_s: Sequence[float]) -> dict[str, float] | None:
    """Percentiles by name; None where there are no values."""
    if not values_s:
        return None
    found = np.percentile(values_s, _PERCENTILES)
    return {f"p{rank}": float(value) for rank, value in zip(_PERCENTILES, found, strict=True)}


def _progress(phase: str, fraction: float | None) -> None:
    """Progress goes to a person who watches, and never to standard output, which is the answer's."""
    if sys.stderr is not None and sys.stderr.isatty():
        done = "" if fraction is None else f" {fraction:.0%}"
        sys.stderr.write(f"\rserve: {phase}{done}  " + ("\n" if fraction == 1.0 else ""))
        sys.stderr.flush()


def render(result: dict[str, Any]) -> str:
    """Write the answer for a person."""
    pages = result["pages"]
    lines = [
        f"{result['model']} {result['weights']}, {result['policy']}, {result['cache']} cache: "
        f"{result['requests']} requests, {result['new_tokens']:,} tokens in {result['steps']:,} steps, "
        f"{format_seconds(result['wall_s'])}, {significant(result['tokens_per_s'])} tokens/s",
        *(f"{name.upper()[:-2]:5} {_spread(result[name])}" for name in ("ttft_s", "tpot_s")),
        f"pages {pages['most_used']:,} of {pages['total']:,} held at most, {pages['page_tokens']:,} tokens "
        f"each, {pages['empty_share']:.0%} of the held slots empty; {pages['shared_tokens']:,} tokens "
        f"shared, {pages['preempted']:,} requests lost their pages",
        f"equal to the simulator: {_said(result['equal_to_simulator'])}"
        + (f" ({result['difference']})" if result["difference"] else ""),
    ]
    if result["equal_outputs"] is not None:
        lines.append(f"equal outputs in both caches: {_said(result['equal_outputs'])}")
    lines += [f"noisy: {reason}" for reason in result["noisy"]]
    lines += [f"Note: {note}" for note in result["notes"]]
    return "\n".join(lines)


def _spread(percentiles: dict[str, float] | None) -> str:
    if percentiles is None:
        return "unknown: every answer has one token"
    return ", ".join(f"{name} {format_seconds(value)}" for name, value in percentiles.items())


def _said(equal: bool | None) -> str:
    return "not simulated with guesses" if equal is None else "yes" if equal else "no"
