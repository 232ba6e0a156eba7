"""The engine as its callers see it: generations, records, measurements, shape-only models."""

from pathlib import Path

import pytest
import torch

from core.analytic.kv_cache import bytes_per_token
from core.analytic.operators import operators
from core.engine.cache_memory import SLOT_STEP
from core.engine.engine import Engine
from core.engine.records import Request, TokenEvent
from core.engine.sampling import Sampling
from core.engine.scheduler import Serving
from tests.engine.embedded import embedded
from tests.engine.forward import random_ids
from tests.engine.tiny import save, tiny_model

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    directory = save(tiny_model("qwen3, tied"), tmp_path_factory.mktemp("qwen3"))
    return Engine.load(directory, weights="fp32", kv="fp32")


def test_events_carry_every_token_and_all_of_the_text() -> None:
    engine = embedded("int4", "bf16")
    events: list[TokenEvent] = []
    prompt = engine.encode("Write one short sentence about cats.", raw=False)
    generation = engine.generate(prompt, Sampling(), max_tokens=12, on_token=events.append)
    assert [event.token_id for event in events] == generation.token_ids
    assert (
        "".join(event.text_delta for event in events)
        == generation.text
        == engine.decode(generation.token_ids)
    )
    assert tuple(event.step for event in events) == generation.steps
    assert generation.prompt_tokens == len(prompt)


def test_an_answer_ends_at_the_end_token_and_a_bare_prompt_runs_on() -> None:
    engine = embedded("int4", "bf16")
    prompt = engine.encode("Reply with the single word yes.", raw=False)
    (end,) = engine.end_tokens
    ended = engine.generate(prompt, Sampling(), max_tokens=40)
    assert ended.stop_reason == "end"
    assert ended.token_ids[-1] == end
    assert engine.decode([end]) == ""
    more = len(ended.token_ids) + 3
    on = engine.generate(prompt, Sampling(), max_tokens=more, end_tokens=frozenset())
    assert (on.stop_reason, len(on.token_ids)) == ("length", more)
    assert on.token_ids[: len(ended.token_ids)] == ended.token_ids


def test_times_follow_their_definitions(tiny: Engine) -> None:
    generation = tiny.generate(random_ids(5), Sampling(), max_tokens=6, end_tokens=frozenset())
    assert generation.ttft_s is not None
    assert generation.tpot_s is not None
    assert generation.tokens_per_s == pytest.approx(1 / generation.tpot_s)
    assert generation.ttft_s >= generation.steps[0].host_s
    assert generation.tpot_s * 5 >= sum(step.host_s for step in generation.steps[1:])
    single = tiny.generate(random_ids(5), Sampling(), max_tokens=1)
    assert (single.tpot_s, single.tokens_per_s) == (None, None)


def test_steps_count_what_the_table_counts(tiny: Engine) -> None:
    generation = tiny.generate(random_ids(5), Sampling(), max_tokens=4, end_tokens=frozenset())
    assert [step.kind for step in generation.steps] == ["prefill", "decode", "decode", "decode"]
    assert [step.index for step in generation.steps] == [0, 1, 2, 3]
    for step in generation.steps:
        table = operators(
            tiny.spec,
            batch=1,
            new_tokens=step.new_tokens,
            context=step.context_tokens,
            weights="fp32",
            kv="fp32",
        )
        assert step.weight_bytes == table.total("weight_streamed_bytes")
        assert step.kv_read_bytes == table.total("kv_read_bytes")
        assert step.kv_write_bytes == table.total("kv_write_bytes")
        assert (step.num_sequences, step.pages_used) == (1, 1)


def test_a_long_prompt_is_read_in_pieces(tiny: Engine) -> None:
    ids = random_ids(20)
    whole = tiny.generate(ids, Sampling(), max_tokens=4, end_tokens=frozenset())
    request = Request(ids, 4, end_tokens=frozenset())
    (pieces,) = tiny.serve([request], Serving(step_tokens=8)).generations
    assert [step.new_tokens for step in pieces.steps] == [8, 8, 4, 1, 1, 1]
    assert pieces.token_ids == whole.token_ids


def test_a_caller_may_stop_before_and_between_tokens(tiny: Engine) -> None:
    never = tiny.generate(random_ids(5), Sampling(), max_tokens=9, should_stop=lambda: True)
    assert (never.stop_reason, never.token_ids, never.ttft_s, never.text) == ("stopped", [], None, "")
    seen: list[TokenEvent] = []
    some = tiny.generate(
        random_ids(5),
        Sampling(),
        max_tokens=9,
        on_token=seen.append,
        should_stop=lambda: len(seen) == 3,
        end_tokens=frozenset(),
    )
    assert (some.stop_reason, len(some.token_ids)) == ("stopped", 3)


def test_an_interrupted_run_leaves_the_engine_as_it_was(tiny: Engine) -> None:
    expected = tiny.generate(random_ids(7), Sampling(), max_tokens=5).token_ids

    def interrupt(event: TokenEvent) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny.generate(random_ids(9), Sampling(), max_tokens=5, on_token=interrupt)
    assert tiny.generate(random_ids(7), Sampling(), max_tokens=5).token_ids == expected


def test_a_seed_repeats_a_sampled_text(tiny: Engine) -> None:
    def ids(seed: int) -> list[int]:
        sampling = Sampling(temperature=1.5, top_k=50, top_p=0.95, seed=seed)
        return tiny.generate(random_ids(5), sampling, max_tokens=12, end_tokens=frozenset()).token_ids

    assert ids(1) == ids(1)
    assert ids(1) != ids(2)


def test_a_generation_stops_where_the_context_ends(tiny: Engine) -> None:
    room = 3
    generation = tiny.generate(
        random_ids(tiny.max_context - room), Sampling(), max_tokens=50, end_tokens=frozenset()
    )
    assert (len(generation.token_ids), generation.stop_reason) == (room, "length")


@pytest.mark.parametrize("name", ["qwen3, tied", "qwen2, untied"])
def test_a_profile_has_the_rows_of_the_operator_table(name: str, tmp_path: Path) -> None:
    engine = Engine.load(save(tiny_model(name), tmp_path), weights="fp32", kv="fp32")
    table = operators(engine.spec, batch=1, new_tokens=1, context=8, weights="fp32", kv="fp32")
    for times_s in (
        engine.profile("decode", tokens=1, context=8, repeats=2),
        engine.profile("prefill", tokens=8, context=8, repeats=2),
    ):
        assert list(times_s) == list(table.names)
        assert all(len(times) == 2 and min(times) > 0 for times in times_s.values())


def test_measurements_return_one_time_a_step(tiny: Engine) -> None:
    assert len(tiny.measure_steps(16, steps=4)) == 4
    assert len(tiny.measure_prefill(16, repeats=2)) == 2
    assert min(tiny.measure_steps(16, steps=4)) > 0


def test_measured_steps_without_a_cache_compute_the_whole_sequence(tmp_path: Path) -> None:
    directory = save(tiny_model("qwen2, untied"), tmp_path)
    engine = Engine.load(directory, weights="fp32", kv="fp32", cache="none")
    engine.measure_steps(16, steps=1)
    assert engine.stepper.peak_activation_bytes >= 16 * engine.spec.hidden_size * 4


def test_memory_is_that_of_the_tensors(tiny: Engine) -> None:
    tiny.generate(random_ids(5), Sampling(), max_tokens=2)
    weights = sum(entry["weight_stored_bytes"] for entry in tiny.tensor_bytes().values())
    cache = bytes_per_token(tiny.spec, "fp32") * SLOT_STEP
    assert tiny.peak_memory_bytes() >= weights + cache


def test_kernels_are_named_for_each_linear_operator() -> None:
    assert set(embedded("int4", "bf16").kernels) == {"qkv", "output", "gate_up", "down", "lm_head"}


def test_a_shape_without_weights_runs_and_repeats() -> None:
    runs = []
    for _ in range(2):
        engine = Engine.load("shape:smollm2-135m", weights="int4", kv="bf16", threads=1)
        generation = engine.generate(engine.encode("hi", raw=False), Sampling(), max_tokens=3)
        assert engine.text.description.startswith("a stand-in")
        runs.append(generation.token_ids)
    assert runs[0] == runs[1]
    assert len(runs[0]) == 3


def test_threads_are_set_as_asked(tmp_path: Path) -> None:
    directory = save(tiny_model("qwen2, untied"), tmp_path)
    before = torch.get_num_threads()
    Engine.load(directory, weights="fp32", kv="fp32", threads=before + 1)
    assert torch.get_num_threads() == before + 1
    torch.set_num_threads(before)
