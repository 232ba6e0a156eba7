"""Ten thousand ways to break a config give an answer that holds together, or one sentence.

The suite tries a few hundred; ``HYPOTHESIS_CONFIGS=10000 pytest tests/catalog/test_strange_configs.py``
tries ten thousand of each.
"""

import json
import math
import os
import time
import tomllib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.analytic.kv_cache import bytes_per_token, cache_bytes, index_bytes, state_bytes
from core.analytic.params import count, stored_bytes
from core.catalog.assets import FOLDER
from core.catalog.hf_config import MAX_CONFIG_CHARACTERS, parse_config
from core.catalog.model import ModelSpec
from core.errors import ConfigError

EXAMPLES = int(os.environ.get("HYPOTHESIS_CONFIGS", "300"))
#: Reading and counting take milliseconds; a config that takes this long would hang a page.
MOST_SECONDS = 1.0
CONFIGS: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "models.toml").read_text())
PATHS = [
    (model, (table, key) if isinstance(CONFIGS[model][table], dict) else (table,))
    for model in CONFIGS
    for table in CONFIGS[model]
    for key in (CONFIGS[model][table] if isinstance(CONFIGS[model][table], dict) else [""])
]

STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 4),
    st.sampled_from([0, -1, 7, 2**31, 10**12, 10**30, -(10**400), 10**400]),
    st.floats(),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e308, 0.5]),
    st.text(max_size=6),
    st.lists(st.integers(-2, 9) | st.text(max_size=3) | st.none(), max_size=4),
    st.dictionaries(st.text(max_size=4), st.integers(), max_size=3),
    st.just([[[[[[[1]]]]]]]),
    st.just({"a": {"b": {"c": {"d": {}}}}}),
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A config of the catalogue with some of its keys dropped, or given values of another kind."""
    model = draw(st.sampled_from(list(CONFIGS)))
    config = json.loads(json.dumps(CONFIGS[model]))
    paths = [path for name, path in PATHS if name == model]
    for path in draw(st.lists(st.sampled_from(paths), min_size=1, max_size=4)):
        table = config
        for key in path[:-1]:
            table = table.get(key) if isinstance(table.get(key), dict) else {}
        if draw(st.booleans()):
            table.pop(path[-1], None)
        else:
            table[path[-1]] = draw(STRANGE)
    return json.dumps(config)  # writes NaN and Infinity as bare words


def check(spec: ModelSpec) -> None:
    counted = count(spec)
    assert 0 < counted.active <= counted.total
    assert counted.embedding > 0
    assert stored_bytes(spec, "bf16") == 2 * counted.total
    assert stored_bytes(spec, "q8_0") <= 2 * counted.total * 17 / 16 + 4096 * 10**6
    assert bytes_per_token(spec, "bf16") >= 0
    assert state_bytes(spec) >= 0
    sizes = [float(cache_bytes(spec, "bf16", 1, tokens)) for tokens in (1, 2, 999, 10**6)]
    assert sizes == sorted(sizes)
    assert all(math.isfinite(size) for size in sizes)
    assert float(index_bytes(spec, 1, 1000)) >= 0
    assert all(part.parameters is None or part.parameters >= 0 for part in (*spec.towers, *spec.extras))


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(mutated())
def test_a_mutated_config_is_counted_or_refused_in_a_sentence(text: str) -> None:
    started = time.process_time()
    try:
        spec = parse_config(text)
    except ConfigError as problem:
        message = str(problem)
        assert message.endswith(".")
        assert "\n" not in message
        assert len(message) < 600
    else:
        check(spec)
    assert time.process_time() - started < MOST_SECONDS


@settings(max_examples=EXAMPLES // 10, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.sampled_from(sorted({path[-1] for _, path in PATHS})), STRANGE, max_size=12))
def test_a_config_of_known_keys_and_strange_values_is_too(config: dict[str, Any]) -> None:
    try:
        check(parse_config(json.dumps(config)))
    except ConfigError as problem:
        assert str(problem).endswith(".")


@pytest.mark.parametrize("model", list(CONFIGS))
@pytest.mark.parametrize("layers", [1, 2000])
def test_a_config_of_any_depth_is_read_at_once(model: str, layers: int) -> None:
    config = json.loads(json.dumps(CONFIGS[model]))
    for table in (config, config.get("text_config", {})):
        if "num_hidden_layers" in table:
            table["num_hidden_layers"] = layers
    started = time.process_time()
    try:
        check(parse_config(json.dumps(config)))
    except ConfigError as problem:
        assert "entry a layer" in str(problem) or "a layer; got" in str(problem)
    assert time.process_time() - started < MOST_SECONDS


@pytest.mark.parametrize(
    "text",
    [
        '{"model_type": "llama", "x": ' + "[" * 100_000 + "]" * 100_000 + "}",
        json.dumps({"model_type": "llama", "junk": "x" * 5_000_000}),
        " " * (MAX_CONFIG_CHARACTERS + 1),
        '{"model_type": "llama", "hidden_size": ' + "9" * 4000 + "}",
        '{"model_type": "llama", "hidden_size": Infinity, "num_hidden_layers": NaN}',
        '{"text_config": {"text_config": {"text_config": {}}}}',
        '{"model_type": {"a": 1}}',
        '{"model_type": "\\ud800", "hidden_size": 8}',
    ],
)
def test_files_that_only_look_like_configs_are_refused_at_once(text: str) -> None:
    started = time.process_time()
    with pytest.raises(ConfigError) as refusal:
        parse_config(text)
    assert str(refusal.value).endswith(".")
    assert time.process_time() - started < MOST_SECONDS


def test_a_literal_infinity_beside_the_shape_is_no_mistake() -> None:
    config = {**CONFIGS["nemotron-h-56b"], "time_step_limit": [0.0, math.inf]}
    text = json.dumps(config)
    assert "Infinity" in text
    assert count(parse_config(text)).total == 56_324_350_464
