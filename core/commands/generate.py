"""``python -m core generate``: write text with the engine on this machine.

The text streams to standard output as it is made; with ``--json`` one object is printed at the end.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any, Final, get_args

from core.analytic.experts import expected_reads
from core.analytic.speculative import acceptance_rate
from core.catalog.formats import ENGINE_FORMATS
from core.commands.arguments import add_formats, real_number, whole_number
from core.commands.output import write
from core.commands.patience import patience
from core.engine.engine import PAGE_TOKENS, CacheKind, Engine
from core.engine.files.models import EMBEDDED
from core.engine.files.shape_only import TINY_MOE
from core.engine.files.weight import KEPT_BY
from core.engine.records import Generation, TokenEvent
from core.engine.runners import RunnerMode
from core.engine.sampling import Sampling
from core.engine.speculation import NUM_GUESSES, ModelSpeculator, NGramSpeculator, Speculator
from core.engine.waiting import LOG as WAITING
from core.errors import RequestError
from core.units import format_gib, format_seconds, significant

_MAX_TOKENS: Final = 1_000_000


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("prompt", metavar="PROMPT", help="the text to answer, or to continue with --raw")
    parser.add_argument(
        "--model",
        default=EMBEDDED,
        help=f"{EMBEDDED}, shape:ID (random weights; {TINY_MOE} has experts), a model's directory, or a "
        ".gguf file",
    )
    add_formats(parser, ENGINE_FORMATS)
    parser.set_defaults(weights="int4")
    parser.add_argument(
        "--cache", default="contiguous", choices=get_args(CacheKind), help="where keys and values are kept"
    )
    parser.add_argument(
        "--page-tokens",
        "--page-size",
        dest="page_size",
        type=whole_number(1, 65_536),
        default=PAGE_TOKENS,
        metavar="N",
        help="tokens in a page of a paged cache",
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where to run")
    parser.add_argument(
        "--runner",
        default="eager",
        choices=get_args(RunnerMode),
        help="operators one by one, fused by a compiler (slow at first), or as CUDA graphs",
    )
    parser.add_argument("--threads", type=whole_number(1, 1024), help="processor threads")
    parser.add_argument(
        "--max-tokens", type=whole_number(1, _MAX_TOKENS), default=128, metavar="N", help="most new tokens"
    )
    parser.add_argument(
        "--speculate",
        type=_way_to_guess,
        metavar="HOW",
        help="guess tokens ahead and verify them: ngram (from the text so far), layers:N (the model's first "
        "N layers), or model:M (another model with the same vocabulary)",
    )
    parser.add_argument(
        "--guesses", type=whole_number(1, 64), default=NUM_GUESSES, metavar="N", help="guessed in a step"
    )
    _add_sampling(parser)


def _add_sampling(parser: ArgumentParser) -> None:
    parser.add_argument("--raw", action="store_true", help="the bare prompt, without the chat template")
    parser.add_argument(
        "--temperature", type=real_number(0, 5), default=0.0, help="0 takes the likeliest token"
    )
    parser.add_argument("--top-k", type=whole_number(0, 1_000_000), default=0, help="0 is off")
    parser.add_argument("--top-p", type=real_number(0.01, 1), default=1.0, help="1 is off")
    parser.add_argument("--seed", type=whole_number(0, 2**63 - 1), default=0, help="of the draw")


def _way_to_guess(text: str) -> str:
    """Refuse what is no way to guess, before a model is read for it."""
    kind, _, value = text.partition(":")
    layers = kind == "layers" and value.isascii() and value.isdigit()
    if text == "ngram" or layers or (kind == "model" and value):
        return text
    raise ArgumentTypeError(
        f"must be ngram, layers:N with a number of layers, or model:M with a model; got {text[:40]!r}"
    )


def run(args: Namespace) -> dict[str, Any]:
    """Load the model, generate, and report.

    Raises:
        RequestError, CheckpointError, FormatError, ConfigError: a sentence on what does not hold.
    """
    if not args.prompt.strip():
        raise RequestError("The prompt is empty. Give a few words for the model to continue.")
    with patience(WAITING):
        engine = _engine(args)
        speculator = _speculator(args, engine)
    generation = engine.generate(
        engine.encode(args.prompt, raw=args.raw),
        Sampling(args.temperature, args.top_k, args.top_p, args.seed),
        max_tokens=args.max_tokens,
        on_token=None if args.json else _write,
        end_tokens=frozenset() if args.raw else None,
        speculator=speculator,
    )
    return {
        "text": generation.text,
        "prompt_tokens": generation.prompt_tokens,
        "output_tokens": len(generation.token_ids),
        "ttft_s": generation.ttft_s,
        "tpot_s": generation.tpot_s,
        "tokens_per_s": generation.tokens_per_s,
        "peak_memory_bytes": engine.peak_memory_bytes(),
        "model": args.model,
        "weights": args.weights,
        "kv": args.kv,
        "cache": args.cache,
        "device": args.device,
        "runner": args.runner,
        **(_speculation(generation) if args.speculate else {}),
        **_experts(engine, generation),
        "notes": [*_file_notes(engine), *(_notes(args, generation) if args.speculate else [])],
    }


def _engine(args: Namespace) -> Engine:
    engine = Engine.load(
        args.model,
        weights=args.weights,
        kv=args.kv,
        cache=args.cache,
        device=args.device,
        threads=args.threads,
        page_tokens=args.page_size,
        runner=args.runner,
    )
    if args.max_tokens > engine.max_context:
        raise RequestError(
            f"--max-tokens must be at most the model's context of {engine.max_context:,} tokens; got "
            f"{args.max_tokens:,}. Ask for fewer."
        )
    return engine


def _speculator(args: Namespace, engine: Engine) -> Speculator | None:
    kind, _, value = (args.speculate or "").partition(":")
    if not kind:
        return None
    if kind == "ngram":
        return NGramSpeculator(args.guesses)
    if kind == "layers":
        return ModelSpeculator(engine, args.guesses, layers=int(value[:9]))
    draft = Engine.load(value, weights=args.weights, kv=args.kv, device=args.device)
    return ModelSpeculator(draft, args.guesses)


def _speculation(generation: Generation) -> dict[str, Any]:
    steps = [step for step in generation.steps if step.kind == "decode"]
    drafted = [step.drafted_tokens for step in steps]
    accepted = [step.accepted_tokens for step in steps]
    return {
        "speculation": {
            "drafted_tokens": sum(drafted),
            "accepted_tokens": sum(accepted),
            "acceptance": acceptance_rate(drafted, accepted),
            "decode_steps": len(steps),
        }
    }


def _experts(engine: Engine, generation: Generation) -> dict[str, Any]:
    """Experts that the steps read, and how many that was expected to be; nothing for a dense model."""
    read = sum(step.experts_read for step in generation.steps)
    expected = sum(float(expected_reads(engine.spec, step.new_tokens)) for step in generation.steps)
    return {"experts": {"read": read, "expected": expected}} if expected else {}


def _file_notes(engine: Engine) -> list[str]:
    """Whether the file was in few bits already, and in other blocks than were asked for."""
    kept_by = KEPT_BY.get(engine.stored_as, engine.weights)
    if engine.weights == kept_by or ENGINE_FORMATS[engine.weights].payload_bits > 8:
        return []
    return [
        f"The model's file keeps its matrices as {engine.stored_as}; {engine.weights} rounds them once more. "
        f"--weights {kept_by} takes them as they are."
    ]


def _notes(args: Namespace, generation: Generation) -> list[str]:
    """What a reader should know of a speculated text."""
    counts = _speculation(generation)["speculation"]
    notes = []
    if args.temperature == 0 and args.weights != "fp32":
        notes.append(
            "This text may differ from what the model writes without speculation, where two tokens are "
            "nearly as likely: several rows are computed by other kernels than one, and rounded otherwise."
        )
    if 3 * counts["accepted_tokens"] < counts["drafted_tokens"]:
        notes.append(
            f"Fewer than a third of the guesses were right ({counts['accepted_tokens']:,} of "
            f"{counts['drafted_tokens']:,}): speculation did not pay here."
        )
    return notes


def _write(event: TokenEvent) -> None:
    write(event.text_delta)


def render(result: dict[str, Any]) -> str:
    """The figures that follow the text, which has been written already."""
    rate = result["tokens_per_s"]
    figures = [
        f"{result['prompt_tokens']} prompt tokens, {result['output_tokens']} written",
        f"first token after {format_seconds(result['ttft_s'])}",
        *([] if rate is None else [f"then {significant(rate)} tokens/s"]),
        *_acceptance(result),
        *_reads(result),
        f"{format_gib(result['peak_memory_bytes'])} of tensors",
        f"{result['model']}, {result['weights']} weights, {result['kv']} cache ({result['cache']}), "
        f"{result['device']}, {result['runner']}",
    ]
    return "\n".join(["\n\n" + "; ".join(figures), *(f"Note: {note}" for note in result["notes"])])


def _acceptance(result: dict[str, Any]) -> list[str]:
    if "speculation" not in result:
        return []
    counts = result["speculation"]
    rate, steps = counts["acceptance"], counts["decode_steps"]
    looked_at = "" if rate is None else f", {rate:.0%} of those that were looked at"
    return [
        f"{counts['accepted_tokens']} of {counts['drafted_tokens']} guesses were right{looked_at}, in "
        f"{steps} {'step' if steps == 1 else 'steps'} after the prompt"
    ]


def _reads(result: dict[str, Any]) -> list[str]:
    if "experts" not in result:
        return []
    counts = result["experts"]
    return [f"{counts['read']:,} experts read in all layers and steps, {counts['expected']:,.1f} expected"]
