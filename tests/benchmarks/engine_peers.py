"""The engine beside transformers and llama.cpp: the same weights, the same lengths, the same threads.

Run it with ``python -m tests.benchmarks.engine_peers``. All take turns, so that a busy host slows all of
them, and each figure is a ratio of medians. llama.cpp is the ``xllamacpp`` wheel with its prompt cache off,
timed by its own clock; its 8-bit file is made of the 4-bit one. transformers runs ``generate`` in bf16.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import gguf
import torch
import transformers
import xllamacpp
from transformers import AutoModelForCausalLM

from core.engine.engine import Engine
from core.engine.files.models import EMBEDDED, embedded_file
from core.engine.records import Request
from core.engine.sampling import Sampling
from core.engine.scheduler import Serving
from tests.benchmarks.figure import Figure, machine_in_words, report

THREADS: Final = 2
ROUNDS: Final = 7
PROMPT_TOKENS: Final = 64
NEW_TOKENS: Final = 48
PREFILL_TOKENS: Final = 512
SEQUENCES: Final = 8
#: Formats that are tried, with that of the cache.
FORMATS: Final = {"int4": "bf16", "int8": "bf16", "int8-dynamic": "bf16", "bf16": "bf16"}
#: llama.cpp's files by name, and our formats with as many bits.
PEERS: Final = {"Q4_1": ("int4",), "Q8_0": ("int8", "int8-dynamic")}

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
    batch: dict[str, Callable[[], float]] = {}
    for weights, kv in FORMATS.items():
        engine = Engine.load(EMBEDDED, weights=weights, kv=kv, threads=THREADS)
        decode[weights] = partial(engine_decode_s, engine)
        prefill[weights] = partial(engine_prefill_s, engine)
        batch[weights] = partial(engine_batch_s, engine)
    with tempfile.TemporaryDirectory() as folder:
        files = {"Q4_1": embedded_file(), "Q8_0": in_8_bits(Path(folder))}
        for name, file in files.items():
            one, many = llama_server(file, 1), llama_server(file, SEQUENCES)
            decode[name] = partial(llama_decode_s, one)
            prefill[name] = partial(llama_prefill_s, one)
            batch[name] = partial(llama_batch_s, many)
        model = transformers_model()
        decode["transformers"] = lambda: transformers_decode_s(model)
        return figures(*(in_turns(peers, ROUNDS) for peers in (decode, prefill, batch)))


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


def engine_batch_s(engine: Engine) -> float:
    """Seconds per token of several sequences at once, from all of their tokens."""
    requests = [Request(prompt(PROMPT_TOKENS), NEW_TOKENS, end_tokens=frozenset()) for _ in range(SEQUENCES)]
    service = engine.serve(requests, Serving(max_sequences=SEQUENCES, share=False))
    steps = [s.host_s for s in service.steps if s.kind == "decode" and s.num_sequences == SEQUENCES]
    return statistics.median(steps) / SEQUENCES


def in_8_bits(folder: Path) -> Path:
    """The embedded model with its matrices as Q8_0, everything else as it is."""
    reader = gguf.GGUFReader(embedded_file())
    path = folder / "q8_0.gguf"
    writer = gguf.GGUFWriter(path, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        of = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=of)
    for tensor in reader.tensors:
        data, quantised = tensor.data, tensor.tensor_type == gguf.GGMLQuantizationType.Q4_1
        if quantised:
            data = gguf.quantize(gguf.dequantize(data, tensor.tensor_type), gguf.GGMLQuantizationType.Q8_0)
        kind = gguf.GGMLQuantizationType.Q8_0 if quantised else tensor.tensor_type
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def llama_server(file: Path, slots: int) -> Any:
    """llama.cpp on a file, with our threads."""
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx = 2 * PREFILL_TOKENS * slots
    params.n_parallel = slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    params.warmup = True
    params.verbosity = -1
    return xllamacpp.Server(params)


def llama_decode_s(server: Any) -> float:
    """Seconds per token of llama.cpp, as it reports them."""
    return float(llama_timings(server, PROMPT_TOKENS, NEW_TOKENS)["predicted_per_token_ms"]) / 1e3


def llama_prefill_s(server: Any) -> float:
    """Seconds of the prefill, as llama.cpp reports them."""
    return float(llama_timings(server, PREFILL_TOKENS, 1)["prompt_ms"]) / 1e3


def llama_batch_s(server: Any) -> float:
    """Seconds per token of several sequences at once; each reports its own time for each of its tokens."""
    with ThreadPoolExecutor(SEQUENCES) as pool:
        runs = [pool.submit(llama_timings, server, PROMPT_TOKENS, NEW_TOKENS) for _ in range(SEQUENCES)]
        each = [float(run.result()["predicted_per_token_ms"]) / 1e3 for run in runs]
    return statistics.median(each) / SEQUENCES


def llama_timings(server: Any, prompt_tokens: int, new_tokens: int) -> dict[str, Any]:
    """What llama.cpp reports of one completion."""
    answer = server.handle_completions(
        {
            "prompt": prompt(prompt_tokens),
            "n_predict": new_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "cache_prompt": False,
        }
    )
    timings: dict[str, Any] = answer["timings"]
    return timings


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


def figures(decode: Times, prefill: Times, batch: Times) -> list[Figure]:
    """Ratios of medians: how many times as fast the engine is, in its best format with as many bits."""
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, {THREADS} threads"
    conditions = f"{ROUNDS} rounds in turns, {versions}, {machine_in_words()}"
    lengths = f"{PROMPT_TOKENS} prompt and {NEW_TOKENS} new tokens, {conditions}"
    against = partial(ratio, "engine decode / transformers bf16 generate", decode, "transformers")
    rows = [against(tuple(FORMATS), target=4.0, conditions=lengths)]
    for peer, ours in PEERS.items():
        rows += [
            ratio(f"engine decode / llama.cpp {peer}", decode, peer, ours, target=1.0, conditions=lengths),
            ratio(
                f"{SEQUENCES} sequences, tokens/s, engine / llama.cpp {peer}",
                batch,
                peer,
                tuple(FORMATS),
                target=2.0,
                conditions=lengths,
            ),
            ratio(
                f"engine prefill of {PREFILL_TOKENS} / llama.cpp {peer}",
                prefill,
                peer,
                tuple(FORMATS),
                target=2.0,
                conditions=conditions,
            ),
        ]
    rows.append(
        ratio(
            f"engine int4 prefill of {PREFILL_TOKENS} / llama.cpp Q4_1",
            prefill,
            "Q4_1",
            ("int4",),
            target=1.0,
            conditions=conditions,
        )
    )
    rows += [speed(f"decode, {name}", times, 1, lengths) for name, times in decode.items()]
    rows += [speed(f"prefill, {name}", times, PREFILL_TOKENS, conditions) for name, times in prefill.items()]
    return rows + [
        speed(f"{SEQUENCES} sequences, {name}", times, 1, lengths) for name, times in batch.items()
    ]


def ratio(
    name: str, times: Times, peer: str, formats: tuple[str, ...], *, target: float, conditions: str
) -> Figure:
    """How many times as fast the best of our formats is as the peer."""
    ours = min(formats, key=lambda fmt: statistics.median(times[fmt]))
    rounds = sorted(theirs / mine for theirs, mine in zip(times[peer], times[ours], strict=True))
    value = statistics.median(times[peer]) / statistics.median(times[ours])
    spread = f"{ours}; by round {rounds[0]:.2f} to {rounds[-1]:.2f}"
    return Figure(name, value, "x", f"at least {target}", f"{spread}; {conditions}")


def speed(name: str, times_s: list[float], tokens: int, conditions: str) -> Figure:
    """Tokens per second, for the reader; nothing is promised in absolute figures."""
    return Figure(name, tokens / statistics.median(times_s), "tokens/s", "none", conditions)


if __name__ == "__main__":
    report(measure)
