"""The engine beside transformers and llama.cpp: the same file, the same lengths, the same threads.

Run it with ``python -m tests.benchmarks.engine_peers``. The three take turns, so that a busy host slows all
of them, and each figure is a ratio of medians. llama.cpp is the ``xllamacpp`` wheel with its prompt
cache off, and is timed by its own clock; transformers runs ``generate`` in bf16 on the same weights.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
import transformers
import xllamacpp
from transformers import AutoModelForCausalLM

from core.engine.engine import Engine
from core.engine.models import EMBEDDED, embedded_file
from core.engine.sampling import Sampling
from tests.benchmarks.figure import Figure, machine_in_words, report

THREADS: Final = 2
ROUNDS: Final = 9
PROMPT_TOKENS: Final = 64
NEW_TOKENS: Final = 48
PREFILL_TOKENS: Final = 512
#: Formats that are tried for decode and for prefill; each figure is the best one's.
FORMATS: Final = {
    "int4": "bf16",
    "int8": "bf16",
    "int8-dynamic": "fp32",
    "bf16": "bf16",
    "fp16": "fp16",
}

#: Seconds per new token, and seconds of a prefill.
Times = dict[str, list[float]]


def prompt(count: int) -> list[int]:
    """Ordinary token ids; every peer gets the same."""
    return [1000 + 37 * index % 20_000 for index in range(count)]


def measure() -> list[Figure]:
    """Run all peers in turns and compare."""
    torch.set_num_threads(THREADS)
    decode: dict[str, Callable[[], float]] = {}
    prefill: dict[str, Callable[[], float]] = {}
    for weights, kv in FORMATS.items():
        engine = Engine.load(EMBEDDED, weights=weights, kv=kv, threads=THREADS)
        decode[weights] = partial(engine_decode_s, engine)
        prefill[weights] = partial(engine_prefill_s, engine)
    server = llama_server()
    decode["llama.cpp"] = lambda: llama_times_s(server, PROMPT_TOKENS, NEW_TOKENS)[1]
    prefill["llama.cpp"] = lambda: llama_times_s(server, PREFILL_TOKENS, 1)[0]
    model = transformers_model()
    decode["transformers"] = lambda: transformers_decode_s(model)
    return figures(in_turns(decode, ROUNDS), in_turns(prefill, ROUNDS))


def in_turns(peers: dict[str, Callable[[], float]], rounds: int) -> Times:
    """Let every peer run once a round; a first round warms up and does not count."""
    times: Times = {name: [] for name in peers}
    for index in range(rounds + 1):
        for name, run in peers.items():
            seconds = run()
            if index:
                times[name].append(seconds)
    return times


def engine_decode_s(engine: Engine) -> float:
    """Seconds per token of the engine."""
    generation = engine.generate(
        prompt(PROMPT_TOKENS), Sampling(), max_tokens=NEW_TOKENS, end_tokens=frozenset()
    )
    return statistics.median(step.host_s for step in generation.steps[1:])


def engine_prefill_s(engine: Engine) -> float:
    """Seconds until the first token of a longer prompt."""
    generation = engine.generate(prompt(PREFILL_TOKENS), Sampling(), max_tokens=1)
    return generation.ttft_s or 0.0


def llama_server() -> Any:
    """llama.cpp on the embedded file, with our threads."""
    params = xllamacpp.CommonParams()
    params.model.path = str(embedded_file())
    params.n_ctx = 2 * PREFILL_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    params.warmup = True
    params.verbosity = -1
    return xllamacpp.Server(params)


def llama_times_s(server: Any, prompt_tokens: int, new_tokens: int) -> tuple[float, float]:
    """Seconds of the prefill and seconds per token, as llama.cpp reports them."""
    answer = server.handle_completions(
        {
            "prompt": prompt(prompt_tokens),
            "n_predict": new_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "cache_prompt": False,
        }
    )
    timings = answer["timings"]
    return timings["prompt_ms"] / 1e3, timings["predicted_per_token_ms"] / 1e3


def transformers_model() -> Any:
    """The same weights in transformers, in bf16."""
    path = embedded_file()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model: Any = AutoModelForCausalLM.from_pretrained(
            str(path.parent), gguf_file=path.name, dtype=torch.bfloat16
        )
    return model.eval()


def transformers_decode_s(model: Any) -> float:
    """Seconds per token of ``generate``: a run with more tokens less a run with one."""

    def run_s(new_tokens: int) -> float:
        ids = torch.tensor([prompt(PROMPT_TOKENS)])
        start = time.perf_counter()
        with torch.inference_mode():
            model.generate(
                ids, max_new_tokens=new_tokens, min_new_tokens=new_tokens, do_sample=False, pad_token_id=2
            )
        return time.perf_counter() - start

    more = NEW_TOKENS // 2
    return (run_s(more) - run_s(1)) / (more - 1)


def figures(decode: Times, prefill: Times) -> list[Figure]:
    """Ratios of medians: how many times as fast the engine is in its best format."""
    best_decode = min(FORMATS, key=lambda name: statistics.median(decode[name]))
    best_prefill = min(FORMATS, key=lambda name: statistics.median(prefill[name]))
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, {THREADS} threads"
    conditions = f"{ROUNDS} rounds in turns, {versions}, {machine_in_words()}"
    decoding = f"{PROMPT_TOKENS} prompt and {NEW_TOKENS} new tokens, {conditions}"
    rows = [
        ratio(
            "engine decode / transformers bf16 generate",
            decode,
            "transformers",
            best_decode,
            target=2.5,
            conditions=decoding,
        ),
        ratio(
            "engine decode / llama.cpp Q4_1",
            decode,
            "llama.cpp",
            best_decode,
            target=0.5,
            conditions=decoding,
        ),
        ratio(
            "engine prefill of 512 / llama.cpp Q4_1",
            prefill,
            "llama.cpp",
            best_prefill,
            target=1.0,
            conditions=conditions,
        ),
        ratio(
            "engine int4 prefill of 512 / llama.cpp Q4_1",
            prefill,
            "llama.cpp",
            "int4",
            target=1.0,
            conditions=conditions,
        ),
    ]
    rows += [speed(f"decode, {name}", times, 1, decoding) for name, times in decode.items()]
    rows += [speed(f"prefill, {name}", times, PREFILL_TOKENS, conditions) for name, times in prefill.items()]
    return rows


def ratio(name: str, times: Times, peer: str, ours: str, *, target: float, conditions: str) -> Figure:
    """How many times as fast ours is as the peer."""
    rounds = sorted(theirs / mine for theirs, mine in zip(times[peer], times[ours], strict=True))
    value = statistics.median(times[peer]) / statistics.median(times[ours])
    spread = f"{ours}; by round {rounds[0]:.2f} to {rounds[-1]:.2f}"
    return Figure(name, value, "x", f"at least {target}", f"{spread}; {conditions}")


def speed(name: str, times_s: list[float], tokens: int, conditions: str) -> Figure:
    """Tokens per second, for the reader; nothing is promised in absolute figures."""
    return Figure(name, tokens / statistics.median(times_s), "tokens/s", "none", conditions)


if __name__ == "__main__":
    report(measure)
