"""A real server: llama.cpp's, on loopback, with the embedded model, measured through both interfaces."""

import asyncio
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from core.errors import EndpointError
from core.lab.endpoint.load import measure
from core.lab.endpoint.record import dumps, loads
from core.lab.endpoint.request import EndpointRequest

KEY = "the-servers-own-key"

if importlib.util.find_spec("xllamacpp") is None:
    pytest.skip(
        "xllamacpp has no wheel for this platform, so no real server is here.", allow_module_level=True
    )


@pytest.fixture(scope="module")
def request_to() -> Iterator[EndpointRequest]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.lab.endpoint.real_server", KEY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), "llama.cpp's server did not start"
        yield EndpointRequest(url, levels=(1, 2), requests=2, prompt_tokens=24, output_tokens=6)
        process.stdin.close()
        process.wait(20)


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_a_real_server_is_measured(request_to: EndpointRequest, api: str) -> None:
    asked = request_to
    if api == "chat":  # its template alone has some thirty tokens
        asked = replace(request_to, api=api, prompt_tokens=48, levels=(2,))
    record = asyncio.run(measure(asked, KEY))
    assert record.server.software == "llama.cpp"
    assert record.server.model == "smollm2"
    assert record.answered == record.asked
    for row in (row for level in record.levels for row in level.rows):
        assert (row.output_tokens, row.counted, len(row.pieces_s)) == (6, "usage", 6)
        assert row.prompt_tokens == pytest.approx(asked.prompt_tokens, abs=3)
    assert loads(dumps(record)) == record
    assert KEY not in dumps(record)


def test_a_real_server_refuses_a_wrong_key_and_a_prompt_that_is_too_long(request_to: EndpointRequest) -> None:
    with pytest.raises(EndpointError, match=r"refuses it \(HTTP 401\). Give a key that it knows"):
        asyncio.run(measure(request_to, "another-key"))
    with pytest.raises(EndpointError, match=r"HTTP 400 .*exceeds the available context size"):
        asyncio.run(measure(replace(request_to, prompt_tokens=2_000), KEY))
    with pytest.raises(EndpointError, match="serves: smollm2; got 'gpt-4'"):
        asyncio.run(measure(replace(request_to, model="gpt-4"), KEY))
