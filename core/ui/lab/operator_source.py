"""Show the source: the engine's function that ran an operator, by the kernels that a record names."""

from __future__ import annotations

import re
from typing import Final

import streamlit as st

from core.lab.compare import compare
from core.lab.record import RunRecord
from core.ui import print_view
from core.ui.lab import engine_source
from core.ui.source import Source
from core.ui.words import operator_name

_MODEL: Final = "core/engine/transformer.py"
_FEED_FORWARD: Final = "core/engine/feed_forward.py"
_STEP: Final = "core/engine/native/step.py"
_CPP: Final = "core/engine/native/cpu_step.cpp"
_OUTER: Final = ("embedding", "final_norm", "lm_head")
_DENSE: Final = ("gate_up", "activation", "down")
#: Operator -> the function that runs it in a step in C++; the choice of the token and the embedding never do.
CPP: Final[dict[str, str]] = {
    "attention_norm": "norms",
    "qkv": "multiply",
    "qk_norm": "turn_and_keep",
    "rope": "turn",
    "kv_write": "keep",
    "attention": "attend_part",
    "output": "multiply",
    "attention_residual": "add_mixed",
    "mlp_norm": "norms",
    "gate_up": "feed_forward",
    "activation": "feed_forward",
    "down": "multiply",
    "mlp_residual": "add_mixed",
    "final_norm": "ending",
    "lm_head": "ending",
}
_TILED: Final = ("int4 product in C++", "int8 x int8 product in C++")
_SWITCHED: Final = re.compile(r"(.+) up to (\d+) rows, then (.+)")


def show(record: RunRecord, phase: str) -> None:
    """A closed part with the function behind each operator, at first the one with the largest gap."""
    part = print_view.fold("Show the source of an operator", key="lab_ran", icon=":material/code:")
    if not part.open:
        return
    names = list(record.measured.operators_s.get(phase, {}))
    with part.place:
        if not names:
            st.caption("This run was not timed by operator.")
            return
        gaps = {row.name: abs(row.gap_s) for row in getattr(compare(record), phase)}
        first = names.index(max(gaps, key=gaps.__getitem__, default=names[0]))
        chosen = st.selectbox("Operator", names, first, format_func=operator_name, key=f"lab_ran_{phase}")
        found = sources(record, phase, chosen if chosen in names else names[0])
        for source in found:
            st.caption(f"{source.gives}: `{source.path}`, line {source.line}")
            st.code(source.text, language=None, wrap_lines=True)
        if not found:
            st.caption("The engine of this app has no such operator; the record is of another version.")


def sources(record: RunRecord, phase: str, operator: str) -> list[Source]:
    """The functions that ran an operator: its own, and the product of its matrix where it has one."""
    rows = _rows(record, phase)
    if operator in CPP and _in_one_call(record, rows):
        ran = engine_source.cpp_source(f"{operator}, in a step in one call", _CPP, CPP[operator])
        return [] if ran is None else [ran]
    own = engine_source.python_source(operator, *_method(operator))
    product = _product(record, operator, 1 if operator == "lm_head" else rows)
    return [source for source in (own, product) if source is not None]


def _method(operator: str) -> tuple[str, str]:
    """File and method of an operator that is called by itself."""
    if operator == "sample":
        return "core/engine/sampling.py", "Sampler.choose"
    if operator in _DENSE:
        return _FEED_FORWARD, f"MLP.{operator}"
    if operator == "router" or operator.startswith("experts_"):
        return _FEED_FORWARD, f"Experts.{operator}"
    return _MODEL, f"{'Transformer' if operator in _OUTER else 'Block'}.{operator}"


def _rows(record: RunRecord, phase: str) -> int:
    """Tokens that went through the model at once; without a cache those of the middle of the answer."""
    if phase == "prefill":
        return record.steps[0].new_tokens
    later = record.later_steps
    return later[len(later) // 2].new_tokens if later else 1


def _in_one_call(record: RunRecord, rows: int) -> bool:
    """Whether such a step ran in one call of C++: each matrix has a kernel of ours, and rows are few."""
    kernels = record.kernels
    if not kernels or not all("product in C++" in name for name in kernels.values()):
        return False
    inner = [name for operator, name in kernels.items() if operator != "lm_head"]
    tiled = all(name.startswith(_TILED) for name in inner)
    return rows <= engine_source.number(_STEP, "MOST_TILED_ROWS" if tiled else "MOST_ROWS")


def _product(record: RunRecord, operator: str, rows: int) -> Source | None:
    """What multiplied by the operator's matrix."""
    kernel = record.kernels.get(operator)
    if kernel is None:
        return None
    few, switched = True, _SWITCHED.fullmatch(kernel)
    if switched is not None:
        few = rows <= int(switched[2])
        kernel = switched[1] if few else switched[3]
    gives = f"its product, {kernel}"
    return engine_source.product_source(gives, kernel, few=few) or engine_source.product_source(
        gives, kernel, few=not few
    )
