"""Totals of the hub for models that are not in the catalogue: the same readers count them exactly.

``tests/data/known_totals.jsonl`` has one model a line: its page, the total that the hub states, the named
extras that this total contains, and the shape of its config.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from core.analytic.params import count
from core.catalog.hf_config import read_config

LINES = (Path(__file__).parents[1] / "data" / "known_totals.jsonl").read_text().splitlines()
KNOWN: list[dict[str, Any]] = [json.loads(line) for line in LINES]


@pytest.mark.parametrize("known", KNOWN, ids=[known["source"].split("/")[-1] for known in KNOWN])
def test_the_count_and_the_named_extras_are_the_hubs_total(known: dict[str, Any]) -> None:
    spec = read_config(known["config"])
    sizes = {part.name: part.parameters or 0 for part in spec.extras}
    assert count(spec).total + sum(sizes[name] for name in known["extras"]) == known["parameters"]
    assert not any(note.startswith("The model type") for note in spec.notes)


def test_a_searched_model_leaves_parts_out() -> None:
    block = {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 1.5}}
    without = {"attention": {"no_op": True}, "ffn": {"ffn_mult": 3.0}}
    spec = read_config(
        {
            "model_type": "nemotron-nas",
            "hidden_size": 512,
            "num_attention_heads": 8,
            "num_hidden_layers": 2,
            "vocab_size": 100,
            "block_configs": [block, without],
        }
    )
    assert spec.layers[0].attention.num_kv_heads == 2
    assert [layer.mlp.intermediate_size for layer in spec.layers] == [512, 1024]
    assert spec.layers[1].mixer is None
    assert spec.layers[1].norms == ("mlp_norm",)
