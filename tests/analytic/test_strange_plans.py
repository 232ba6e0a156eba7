"""A broken config that is counted can also be planned: an answer that holds together, or one sentence.

``HYPOTHESIS_CONFIGS=10000 pytest tests/analytic/test_strange_plans.py`` tries a hundred times as many.
"""

import math

import numpy as np
from hypothesis import HealthCheck, given, settings

from core.analytic.datasheet import machine_from
from core.analytic.operators import operators
from core.analytic.parallel import ParallelPlan, device_operators, stages
from core.analytic.plan import plan
from core.catalog.accelerators import accelerator
from core.catalog.hf_config import parse_config
from core.catalog.model import ModelSpec
from core.catalog.scenario import Scenario
from core.errors import ConfigError, UserError
from tests.catalog.test_strange_configs import EXAMPLES, mutated

CHIP = machine_from(accelerator("h100-sxm-80gb"))
PASS = {"batch": 1, "new_tokens": 1, "context": 100, "weights": "bf16", "kv": "bf16"}
PLANS = (ParallelPlan(tp=2), ParallelPlan(pp=2), ParallelPlan(tp=3, pp=3))


def check(spec: ModelSpec) -> None:
    table = operators(spec, **PASS)  # type: ignore[arg-type]
    kept = float(table.total("weight_stored_bytes"))
    assert 0 < kept < math.inf
    assert np.all(table.flops >= 0)
    for split in PLANS:
        if split.pp > spec.num_layers:
            continue
        shares = [
            device_operators(spec, split, stage, **PASS)  # type: ignore[arg-type]
            for stage in stages(spec, split)
        ]
        on_chips = split.tp * sum(float(share.total("weight_stored_bytes")) for share in shares)
        assert on_chips >= kept * (1 - 1e-9)  # nothing is lost between the chips


def check_plan(spec: ModelSpec) -> None:
    found = plan(Scenario(), spec, CHIP)
    if found.decode is not None and found.decode.time_s is not None:
        floor = max(found.decode.bytes / CHIP.bandwidth_bytes_per_s, 0.0)
        assert floor <= found.decode.time_s < math.inf
    assert all(sentence.endswith(".") for sentence in found.violations)


@settings(max_examples=max(EXAMPLES // 10, 1), suppress_health_check=list(HealthCheck))
@given(mutated())
def test_what_is_read_is_planned_too(text: str) -> None:
    try:
        spec = parse_config(text)
    except ConfigError:
        return
    try:
        check(spec)
        check_plan(spec)
    except UserError as problem:
        assert str(problem).endswith(".")
