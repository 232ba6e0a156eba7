"""``python -m core model``: count a model's parameters, weights and KV cache."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from core.analytic import kv_cache, params
from core.analytic.operators import operators
from core.catalog.formats import number_format
from core.catalog.hf_config import MAX_CONFIG_CHARACTERS, parse_config
from core.catalog.hub import hub_config, is_hub_id
from core.catalog.model import ModelSpec
from core.catalog.models import catalogue, model
from core.catalog.near_names import one_of, spelled
from core.catalog.plain_text import plain_text
from core.catalog.scenario import LIMITS
from core.commands.arguments import add_formats, whole_number
from core.errors import ConfigError
from core.units import format_gb, format_gib, format_si

_DEFAULT_CONTEXT: Final = 2048
_LONGEST_NAME: Final = 80
_LONGEST_NOTE: Final = 400
_MAX_CONTEXT: Final = LIMITS["input_tokens"][1] + LIMITS["output_tokens"][1]


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "config", metavar="CONFIG_OR_ID", help="a catalogue id, a config.json, a folder with one, or a hub id"
    )
    add_formats(parser)
    parser.add_argument("--batch", type=whole_number(*LIMITS["batch"]), default=1, help="sequences")
    parser.add_argument(
        "--context", type=whole_number(1, _MAX_CONTEXT), default=_DEFAULT_CONTEXT, help="tokens of each"
    )


def find_model(name: str) -> ModelSpec:
    """A catalogue model by its id, the model that a config file describes, or one of the hub.

    Raises:
        ConfigError: it is none of these, the file cannot be read, or it does not describe a model.
    """
    if (known_id := spelled(name, catalogue())) in catalogue():
        return model(known_id)
    path = Path(name)
    try:
        path = path / "config.json" if path.is_dir() else path
        known = path.is_file()
    except OSError:  # for instance a name longer than the file system allows
        known = False
    if not known and is_hub_id(name) and not path.parent.exists():
        return _plain(parse_config(hub_config(name), name=name, source=f"https://huggingface.co/{name}"))
    if not known:
        raise ConfigError(_unknown(name, path))
    return _plain(parse_config(_read(path), name=path.parent.name or path.stem, source=str(path)))


def _unknown(name: str, path: Path) -> str:
    if path.suffix == ".json" or len(path.parts) > 1:
        return f"A config must be a file that is there; there is no {str(path)[:200]!r}. Check the path."
    return one_of("The model", name, catalogue(), "models", otherwise=", or the path of a config.json")


def _plain(spec: ModelSpec) -> ModelSpec:
    """The same with words that a terminal can show: a file may say anything."""
    return replace(
        spec,
        name=plain_text(spec.name, _LONGEST_NAME) or "unnamed",
        source=plain_text(spec.source, _LONGEST_NOTE),
        model_type=plain_text(spec.model_type, _LONGEST_NAME) or "unnamed",
        notes=tuple(plain_text(note, _LONGEST_NOTE) for note in spec.notes),
        extras=tuple(replace(part, name=plain_text(part.name, _LONGEST_NAME)) for part in spec.extras),
    )


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CONFIG_CHARACTERS + 1)
    except OSError as problem:
        raise ConfigError(
            f"The config must be a file that can be read; {path} cannot ({problem.strerror}). Check the path."
        ) from None
    if len(data) > MAX_CONFIG_CHARACTERS:
        raise ConfigError(
            f"A config may have up to {MAX_CONFIG_CHARACTERS:,} bytes; {path} has more. "
            "Give a config.json, not weights or a tokenizer."
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"A config must be text; {path} is not. Give a config.json.") from None


def run(args: Namespace) -> dict[str, Any]:
    """Count the model.

    Raises:
        ConfigError, FormatError: the model or a format is not known.
    """
    number_format(args.weights, "weights")
    number_format(args.kv, "kv")
    spec = find_model(args.config)
    counted = params.count(spec)
    step = operators(
        spec, batch=args.batch, new_tokens=1, context=args.context, weights=args.weights, kv=args.kv
    )
    return {
        "id": spec.id,
        "architecture": spec.model_type,
        "attention": spec.attention,
        "params": {
            "total": counted.total,
            "active": counted.active,
            "embedding": counted.embedding,
            "towers": counted.towers,
            "extras": {part.name: part.parameters for part in spec.extras},
        },
        "layers": spec.mixers,
        "weights": {
            "stored_bytes": params.stored_bytes(spec, args.weights),
            "streamed_bytes_per_step": int(step.total("weight_streamed_bytes")),
        },
        "kv": {
            "bytes_per_token": kv_cache.bytes_per_token(spec, args.kv),
            "cache_bytes": int(kv_cache.cache_bytes(spec, args.kv, args.batch, args.context)),
            "state_bytes": kv_cache.state_bytes(spec),
            "indexer_bytes": int(kv_cache.index_bytes(spec, args.batch, args.context)),
        },
        "notes": [*spec.notes, *_context_notes(spec, args.context)],
    }


def _context_notes(spec: ModelSpec, context: int) -> list[str]:
    if context <= spec.max_context:
        return []
    return [
        f"The model was made for {spec.max_context:,} tokens; {context:,} are counted, but it would not "
        "write sense there."
    ]


def render(result: dict[str, Any]) -> str:
    """Write the same result for a person."""
    counts, weights, kv = result["params"], result["weights"], result["kv"]
    stored, cache = weights["stored_bytes"], kv["cache_bytes"]
    lines = [
        f"{result['id']}: {result['architecture']}, {result['attention']} attention",
        f"  layers          {_mixers(result['layers'])}",
        f"  parameters      {counts['total']:,} ({format_si(counts['total']).strip()})",
        *_parts(counts),
        f"  weights         {format_gb(stored)} = {format_gib(stored)} stored, "
        f"{format_gb(weights['streamed_bytes_per_step'])} read per decode step",
        f"  KV cache        {kv['bytes_per_token']:,} B a token, {format_gib(cache)} in all",
    ]
    if kv["indexer_bytes"]:
        lines.append(f"  indexer keys    {format_gib(kv['indexer_bytes'])} in all, in fp8")
    if kv["state_bytes"]:
        lines.append(f"  fixed state     {format_gib(kv['state_bytes'])} a sequence")
    notes = [f"  Note: {note}" for note in result["notes"]]
    return "\n".join([*lines, *_extras(counts["extras"]), *notes])


def _mixers(layers: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {kind}" for kind, number in layers.items()) or "none that attends"


def _parts(counts: dict[str, Any]) -> list[str]:
    """The parts of the total that differ from it."""
    parts = {
        "for one token": counts["active"],
        "input table": counts["embedding"],
        "towers": counts["towers"],
    }
    return [
        f"    {name:<14}{number:,}" for name, number in parts.items() if number not in {0, counts["total"]}
    ]


def _extras(extras: dict[str, int | None]) -> list[str]:
    """What files may hold beside the model; in no number above."""
    return [
        f"  Not counted: {name} ({'size unknown' if number is None else f'{number:,} parameters'})."
        for name, number in extras.items()
    ]
