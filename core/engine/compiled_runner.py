"""Steps whose small operators torch's compiler fuses: norms, turns, residuals and activations.

What lies between two operators that the compiler cannot look into is one piece, compiled once: all layers
of one shape use the same code, since their weights are arguments of it. Where the number of rows changes, the
code is made once more with it left open.
"""

from __future__ import annotations

from itertools import groupby

import torch

from core.engine.batch import Batch
from core.engine.kv_cache import KVPool
from core.engine.transformer import Operator, Pass, Transformer

#: They ask for Python values, which differ from step to step, or serve the ends of the model only.
APART = frozenset({"embedding", "kv_write", "attention", "final_norm", "lm_head"})
#: How many rows an expert has is known on the host alone.
EXPERTS = frozenset({"router", "experts_gate_up", "experts_activation", "experts_down", "experts_sum"})
#: Matrix products; on a processor they are C++ or packed by oneDNN, which the compiler does not see.
PRODUCTS = frozenset({"qkv", "output", "gate_up", "down"})
#: Kinds of pieces, numbers of rows and models of one process; torch gives up after 8 unless told.
_MOST_CODES = 256


class CompiledRunner:
    """Compiled pieces, with the operators between them as they are.

    Args:
        model: whose operators are run. apart: names of those that are not compiled.
        backend: torch's compiler, or a part of it.
    """

    def __init__(self, model: Transformer, apart: frozenset[str], backend: str = "inductor") -> None:
        torch._dynamo.config.recompile_limit = _MOST_CODES
        torch._dynamo.config.accumulated_recompile_limit = _MOST_CODES
        parts = groupby(model.operators(), lambda operator: operator[0] in apart)
        self._pieces = [(list(operators), is_apart) for is_apart, operators in parts]
        self._compiled = torch.compile(_together, fullgraph=True, backend=backend)

    @torch.inference_mode()
    def run(self, batch: Batch, pool: KVPool) -> Pass:
        """See ``StepRunner``."""
        values = Pass(batch, pool)
        for operators, is_apart in self._pieces:
            if is_apart:
                _together(operators, values)
                _leave_rows_open(values)
            else:
                self._compiled(operators, values)
        return values


def _together(operators: list[Operator], values: Pass) -> None:
    for _, operator in operators:
        operator(values)


def _leave_rows_open(values: Pass) -> None:
    """Tell the compiler that other steps have other numbers of rows; one row is a code of its own."""
    for name in ("hidden", "normed", "qkv", "wide", "cosine", "sine"):
        tensor = getattr(values, name, None)
        if tensor is not None and tensor.shape[0] > 1:
            torch._dynamo.maybe_mark_dynamic(tensor, 0)
