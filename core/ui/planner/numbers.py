"""The planner's headline numbers as tiles, in a fixed order."""

from __future__ import annotations

from typing import Final

from core.analytic.planner_room import MOST_USERS
from core.ui.number_tiles import Tile, Tone
from core.ui.planner import ranges
from core.ui.planner.found import Found
from core.units import format_gib, format_seconds, significant

#: The page of the course where each number is earned.
LESSON_OF: Final[dict[str, str]] = {
    "Memory": "will_it_fit",
    "TTFT": "prefill_and_decode",
    "TPOT": "prefill_and_decode",
    "Tokens/s": "prefill_and_decode",
    "Users": "kv_cache",
    "Context": "kv_cache",
}
UNKNOWN: Final = "unknown"
#: What a serving engine takes of a chip's memory unless it is told otherwise.
#: https://docs.vllm.ai/en/latest/configuration/engine_args/ (gpu-memory-utilization), 2026-11-29
ENGINE_SHARE: Final = 0.9


def tiles(found: Found) -> tuple[Tile, ...]:
    """The six numbers, those of time with their range."""
    worth = ranges.value(found)
    rates = ranges.rates_between(worth.tpot, found.case.scenario.batch)
    return (
        _memory(found),
        _seconds("TTFT", found.plan.ttft_s, _first_token(found), ranges.between(worth.ttft)),
        _seconds("TPOT", found.plan.tpot_s, "time per token after it", ranges.between(worth.tpot)),
        _rate(found, rates),
        _users(found),
        _context(found),
    )


def _memory(found: Found) -> Tile:
    need = found.plan.memory
    if need is None:
        return Tile("Memory", UNKNOWN, "the model does not divide by this plan")
    total = format_gib(float(need.total_bytes))
    if need.capacity_bytes is None:
        return Tile("Memory", "Fits? Unknown", f"it takes {total}; what the chip offers is not published")
    of_all = f"{total} of {format_gib(need.capacity_bytes)} usable{_whose(found)}"
    if not found.plan.fits:
        return Tile("Memory", "Does not fit", of_all, "bad")
    if engine_sentence(found):
        return Tile("Memory", "It fits", f"{of_all}, more than the {ENGINE_SHARE:.0%} that engines take")
    return Tile("Memory", "It fits", of_all, "good")


def engine_sentence(found: Found) -> str:
    """That an engine would not take what fits, where that is more than its default share; else empty."""
    need = found.plan.memory
    if need is None or need.capacity_bytes is None or not found.plan.fits:
        return ""
    share_bytes = ENGINE_SHARE * need.capacity_bytes
    if float(need.total_bytes) <= share_bytes:
        return ""
    return (
        f"It fits, but an engine with its default share of {ENGINE_SHARE:.0%} of the memory, which is "
        f"{format_gib(share_bytes)}, would not take it. Raise that share (vLLM: gpu-memory-utilization), or "
        "make room."
    )


def _whose(found: Found) -> str:
    return " on the fullest chip" if found.case.split else ""


def _first_token(found: Found) -> str:
    """What TTFT is; that of a batch is the time of all its prompts."""
    batch = found.case.scenario.batch
    return "time to first token" + (f", all {batch:,} prompts arriving at once" if batch > 1 else "")


def _seconds(name: str, seconds: float | None, meaning: str, between: str) -> Tile:
    return Tile(name, UNKNOWN if seconds is None else format_seconds(seconds), _with(meaning, between))


def _with(meaning: str, between: str) -> str:
    return f"{meaning}: {between}" if between else meaning


def _rate(found: Found, between: str) -> Tile:
    rate, scenario = found.plan.tokens_per_s, found.case.scenario
    users = "one user" if scenario.batch == 1 else f"all {scenario.batch:,} users"
    if found.case.replicas > 1:
        users = f"{users} of one {'replica' if found.case.split else 'chip'}"
    return Tile(
        "Tokens/s", UNKNOWN if rate is None else significant(rate), _with(f"written for {users}", between)
    )


def _users(found: Found) -> Tile:
    if found.users is None:
        return Tile("Users", UNKNOWN, "that fit at once")
    more = " or more" if found.users == MOST_USERS else ""
    tone: Tone = "plain" if found.users else "bad"
    where = " on one replica" if found.case.split and found.case.replicas > 1 else ""
    return Tile("Users", f"{found.users:,}{more}", f"fit{where} at {found.case.context:,} tokens each", tone)


def _context(found: Found) -> Tile:
    room, batch = found.context, found.case.scenario.batch
    if room is None:
        return Tile("Context", UNKNOWN, "tokens that fit")
    whose = "for each user" if batch > 1 else "for the one user"
    limit = "the model's own limit" if room.tokens == room.model_tokens else "what the memory holds"
    tone: Tone = "plain" if room.tokens else "bad"
    return Tile("Context", f"{room.tokens:,}", f"tokens {whose}: {limit}", tone)
