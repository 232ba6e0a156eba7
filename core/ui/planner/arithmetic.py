"""The arithmetic behind the planner's numbers, laid open: six worked numbers with today's values.

The formulas are those of ``core.analytic``; here they are only written down with their inputs. A test
runs every program this module writes and holds its result against the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from core.analytic.memory import Footprint
from core.analytic.planner_room import MOST_TOKENS, MOST_USERS, need_of
from core.catalog.formats import STORAGE_FORMATS
from core.errors import ScenarioError
from core.ui.pass_arithmetic import Origin, Passes, pass_number
from core.ui.planner.found import Found
from core.ui.planner.split_arithmetic import split_number
from core.ui.worked_number import Input, WorkedNumber
from core.units import format_count, format_gib, format_seconds, significant

_SHAPE: Final = "operator table: the model's shape"
_PRIOR: Final = "fitted to published measurements"


def worked_number(found: Found, name: str) -> WorkedNumber:
    """Work one of the tiles out.

    Raises:
        FormatError: the chip cannot compute in a format of the scenario.
        ScenarioError: the number is unknown here.
    """
    return _WORKED[name](found)


# --- Memory ---------------------------------------------------------------------------------------


def _memory(found: Found) -> WorkedNumber:
    need = found.plan.memory
    if need is None:
        raise _undivided(found)
    total = float(need.total_bytes)
    capacity = need.capacity_bytes
    verdict = "usable memory unknown"
    if capacity is not None:
        verdict = f"{'within' if found.plan.fits else 'more than'} the usable {format_gib(capacity)}"
    values = _memory_values(need)
    return WorkedNumber(
        name="memory",
        formula="memory = weights + KV cache + activations + overhead",
        substituted=" + ".join(format_gib(value) for value in values.values()),
        result=f"{format_gib(total)}, {verdict}",
        inputs=(*_memory_inputs(found, need), _capacity(found)),
        python=_program(
            {f"{name}_bytes": value for name, value in values.items()},
            f"memory_bytes = {' + '.join(f'{name}_bytes' for name in values)}",
            'print(f"{memory_bytes / 2**30:.3g} GiB")',
        ),
        note=f"{_whose(found)}At the end of the answer, when the cache is fullest. Left out: fragmentation, "
        "and what an engine reserves beyond need.",
    )


def _undivided(found: Found) -> ScenarioError:
    return ScenarioError(
        f"{found.case.model.name} must divide by its plan before anything can be weighed or timed; this one "
        "does not. Choose another split."
    )


def _whose(found: Found) -> str:
    if not found.case.split:
        return ""
    return f"The fullest of the {found.share:,} chips that share the model. "


def _memory_values(need: Footprint) -> dict[str, float]:
    return {
        "weights": float(need.weights_bytes),
        "kv": float(need.kv_bytes),
        "activations": float(need.activation_bytes),
        "overhead": float(need.overhead_bytes),
    }


def _memory_inputs(found: Found, need: Footprint) -> tuple[Input, ...]:
    scenario = found.case.scenario
    values = _memory_values(need)
    tokens = f"{scenario.batch:,} × {found.case.context:,} tokens"
    cached = "the chip's part of keys and values" if found.case.split else "keys and values"
    meanings = {
        "weights": f"{_parameters(found)} in {STORAGE_FORMATS[scenario.weights].name}, scales included",
        "kv": f"{cached} of {tokens} in {STORAGE_FORMATS[scenario.kv].name}",
        "activations": "the largest tensors of one pass",
        "overhead": "what driver and framework keep",
    }
    symbols = {**{name: name for name in values}, "kv": "KV cache"}
    return tuple(
        Input(symbols[n], meanings[n], format_gib(v), _PRIOR if n == "overhead" else _SHAPE)
        for n, v in values.items()
    )


def _parameters(found: Found) -> str:
    return "the chip's part of the parameters" if found.case.split else "all parameters"


def _capacity(found: Found) -> Input:
    origin = found.origin("usable_memory")
    size = found.machine.capacity_bytes
    if size is None:
        return Input("usable memory", "what software sees of the chip's memory", "unknown", "not published")
    return Input(
        "usable memory", "what software sees of the chip's memory", format_gib(size), origin.words, origin.url
    )


# --- Times ----------------------------------------------------------------------------------------


def _ttft(found: Found) -> WorkedNumber:
    scenario = found.case.scenario
    prompts = format_count(scenario.batch, "prompt")
    what = f"reading {prompts} of {scenario.input_tokens:,} tokens in one pass"
    note = "Left out: waiting for other requests, and overlap of neighbouring operators."
    if found.case.split:
        return split_number(_timed(found), "TTFT", "prefill", what, note)
    return pass_number(
        "TTFT", _passes(found, "prefill", what, STORAGE_FORMATS[scenario.weights].compute), note
    )


def _tpot(found: Found) -> WorkedNumber:
    batch = found.case.scenario.batch
    new = "1 new token" if batch == 1 else f"1 new token for each of {batch:,} users"
    what = f"{new} at context {found.middle_context:,}, the middle of the answer"
    note = (
        "TPOT is the mean over the answer; this is its middle step, a little off. Left out: overlap of "
        "neighbouring operators."
    )
    if found.case.split:
        return split_number(_timed(found), "TPOT", "decode", what, note)
    return pass_number("TPOT", _passes(found, "decode", what, "bandwidth"), note)


def _timed(found: Found) -> Found:
    if found.plan.memory is None:
        raise _undivided(found)
    if found.plan.ttft_s is None:
        raise ScenarioError(" ".join(found.plan.violations))
    return found


def _passes(found: Found, phase: str, what: str, fact: str) -> Passes:
    """The passes of a phase; ``fact`` is the number of the data sheet that matters most."""
    return Passes(what, [found.table(phase)], found.machine, rates=found.origin(fact), costs=Origin(_PRIOR))


def _rate(found: Found) -> WorkedNumber:
    tpot_s, batch = found.plan.tpot_s, found.case.scenario.batch
    if tpot_s is None:
        raise ScenarioError(
            "Tokens a second must rest on a time per token, which is unknown here. Ask for an answer of two "
            "tokens or more, in a format that the chip computes."
        )
    return WorkedNumber(
        name="tokens/s",
        formula="tokens/s = batch / TPOT",
        substituted=f"{batch:,} / {format_seconds(tpot_s)}",
        result=f"{significant(batch / tpot_s)} tokens/s",
        inputs=(
            Input("batch", "requests that are served at once", f"{batch:,}", "the scenario"),
            Input("TPOT", "time per token after the first", format_seconds(tpot_s), "the number beside it"),
        ),
        python=_program(
            {"batch": batch, "tpot_s": tpot_s},
            "tokens_per_s = batch / tpot_s",
            'print(f"{tokens_per_s:.3g} tokens/s")',
        ),
        note="While the batch decodes; the prefill is not in it.",
    )


# --- Room -----------------------------------------------------------------------------------------


def _users(found: Found) -> WorkedNumber:
    most = found.users
    if most is None:
        raise _no_capacity(found)
    tries = sorted({max(most, 1), min(most + 1, MOST_USERS)})
    need = need_of(found.case, batch=np.array(tries), context=float(found.case.context))
    what = f"users of {found.case.context:,} tokens each"
    return _room(found, need, tries, f"{most:,} {what}", name="users")


def _context(found: Found) -> WorkedNumber:
    room = found.context
    if room is None:
        raise _no_capacity(found)
    most = room.memory_tokens
    tries = sorted({max(most, 1), min(most + 1, MOST_TOKENS)})
    need = need_of(found.case, batch=float(found.case.scenario.batch), context=np.array(tries))
    users = found.case.scenario.batch
    whose = "for the one user" if users == 1 else f"for each of {users:,} users"
    result = f"{most:,} tokens {whose}; the model was made for {room.model_tokens:,}"
    return _room(found, need, tries, result, name="context")


def _no_capacity(found: Found) -> ScenarioError:
    if found.machine.capacity_bytes is not None:
        return _undivided(found)
    return ScenarioError(
        f"How much fits must rest on the usable memory, which is unknown for {found.machine.name}. "
        "Choose another chip."
    )


def _room(found: Found, need: Footprint, tries: list[int], result: str, *, name: str) -> WorkedNumber:
    totals = dict(zip(tries, np.broadcast_to(need.total_bytes, len(tries)), strict=True))
    capacity = found.machine.capacity_bytes or 0.0
    shown = " ; ".join(
        f"{count:,}: {format_gib(float(total))} {'≤' if total <= capacity else '>'} {format_gib(capacity)}"
        for count, total in totals.items()
    )
    return WorkedNumber(
        name=name,
        formula=f"{name} = largest n with weights + KV cache(n) + activations(n) + overhead ≤ usable memory",
        substituted=shown,
        result=result,
        inputs=(
            Input(
                "weights",
                f"{_parameters(found)}, scales included",
                format_gib(float(need.weights_bytes.flat[0])),
                _SHAPE,
            ),
            Input("KV cache(n)", f"at n = {tries[0]:,}", format_gib(float(need.kv_bytes.flat[0])), _SHAPE),
            Input(
                "activations(n)",
                "largest tensors of a pass",
                format_gib(float(need.activation_bytes.flat[0])),
                _SHAPE,
            ),
            Input(
                "overhead",
                "what driver and framework keep",
                format_gib(float(need.overhead_bytes.flat[0])),
                _PRIOR,
            ),
            _capacity(found),
        ),
        python=_room_program(need, tries, capacity, name),
        note=f"{_whose(found)}More never fits where less does not, so these two neighbours prove it.",
    )


def _room_program(need: Footprint, tries: list[int], capacity: float, name: str) -> str:
    count = len(tries)
    # Another stage can be the fullest with more users, so its weights stand with each of the tries.
    parts = (need.weights_bytes, need.kv_bytes, need.activation_bytes, need.overhead_bytes)
    columns = zip(*(np.broadcast_to(part, count) for part in parts), strict=True)
    rows = ", ".join(
        f"{n}: ({', '.join(f'{size:.12g}' for size in sizes)})"
        for n, sizes in zip(tries, columns, strict=True)
    )
    return "\n".join(
        (
            f"capacity_bytes = {capacity:.12g}",
            f"# {name}: weights, KV cache, activations, overhead",
            f"needed_bytes = {{{rows}}}",
            f"{name} = max((n for n, parts in needed_bytes.items() "
            "if sum(parts) <= capacity_bytes), default=0)",
            f"print({name})",
        )
    )


def _program(values: Mapping[str, float], line: str, show: str) -> str:
    return "\n".join([*(f"{name} = {value:.12g}" for name, value in values.items()), line, show])


_WORKED: Final[dict[str, Callable[[Found], WorkedNumber]]] = {
    "Memory": _memory,
    "TTFT": _ttft,
    "TPOT": _tpot,
    "Tokens/s": _rate,
    "Users": _users,
    "Context": _context,
}
