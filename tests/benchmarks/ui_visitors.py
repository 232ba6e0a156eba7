"""Fifty visitors on the planner, each changing one value every five seconds, without browsers.

Each visitor is a websocket that speaks the server's own protocol: it opens the page, finds the slider
and its fragment in what the server sends, and then moves the slider. The server's answer is complete
when it says so. Bounded in number and in time, and only against a server started here.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from core.ui.scenario.editor import steps
from tests.benchmarks.figure import Figure, machine_in_words, report
from tests.browser.the_app import running_app

VISITORS = 50
PERIOD_S = 5.0
CHANGES = 5
#: A first page is ten times the work of a change: visitors who come at once would wait for one another.
ARRIVAL_S = 0.3
SLIDER = "Input tokens"
LONGEST_ANSWER_S = 30.0
LARGEST_MESSAGE = 2**24


@dataclass
class Answer:
    """What one run of the script told: the slider's id, its fragment, the page, and the seconds it took."""

    widget_id: str = ""
    fragment_id: str = ""
    page: str = ""
    seconds: float = 0.0


def measure() -> list[Figure]:
    """Start the app, let the visitors come, and time every change."""
    with tempfile.TemporaryDirectory() as folder, running_app(Path(folder)) as app:
        url = app.address.replace("http", "ws") + "/_stcore/stream"
        seconds, cpu_share = asyncio.run(crowd(url, psutil.Process(app.process.pid)))
    ordered = sorted(seconds)
    load = psutil.getloadavg()[0] if hasattr(psutil, "getloadavg") else float("nan")
    return [
        Figure(
            f"planner: {VISITORS} visitors, a change each {PERIOD_S:.0f} s, 95th percentile",
            ordered[int(len(ordered) * 0.95)] * 1000,
            "ms",
            "below 150",
            f"{len(ordered)} changes to the last element, median {statistics.median(ordered) * 1000:.0f} ms, "
            f"server at {cpu_share:.0%} of a core, every scenario new to the server; {machine_in_words()}, "
            f"load {load:.1f}",
        )
    ]


async def crowd(url: str, server: psutil.Process) -> tuple[list[float], float]:
    """All visitors at once: they come one after another, and when all are there move at random times."""
    everybody = asyncio.Barrier(VISITORS + 1)
    visits = [asyncio.create_task(visit(url, number, everybody)) for number in range(VISITORS)]
    await everybody.wait()
    before, start = sum(server.cpu_times()[:2]), time.monotonic()
    found = await asyncio.gather(*visits)
    share = (sum(server.cpu_times()[:2]) - before) / (time.monotonic() - start)
    return [second for each in found for second in each], share


async def visit(url: str, number: int, everybody: asyncio.Barrier) -> list[float]:
    """One visitor: a batch of its own, so that no other has asked for its scenarios."""
    chance = random.Random(number)  # noqa: S311 - when a visitor moves is no secret
    await asyncio.sleep(number * ARRIVAL_S)
    async with connect(url, subprotocols=["streamlit"], max_size=LARGEST_MESSAGE) as socket:  # type: ignore[list-item]
        query = f"v=1&b={number + 3}"
        page = await ask(socket, rerun(query))
        await everybody.wait()
        await asyncio.sleep(chance.random() * PERIOD_S)
        seconds = []
        for value in chance.sample(steps("input_tokens", 2048), CHANGES):
            answer = await ask(socket, rerun(query, page, value))
            seconds.append(answer.seconds)
            await asyncio.sleep(PERIOD_S * (0.8 + 0.4 * chance.random()))
    return seconds


def rerun(query: str, page: Answer | None = None, value: int = 0) -> BackMsg:
    """What a browser sends: at first only the address, then the slider's new value and its fragment."""
    message = BackMsg()
    state = message.rerun_script
    state.query_string = query
    if page is not None:
        state.page_script_hash, state.fragment_id = page.page, page.fragment_id
        widget = state.widget_states.widgets.add()
        widget.id = page.widget_id
        widget.string_array_value.data.append(f"{value:,}")
    return message


async def ask(socket: ClientConnection, message: BackMsg) -> Answer:
    """Send a message and read until the script has finished."""
    start = time.perf_counter()
    await socket.send(message.SerializeToString())
    answer = Answer()
    async with asyncio.timeout(LONGEST_ANSWER_S):
        while True:
            told = ForwardMsg()
            told.ParseFromString(bytes(await socket.recv(decode=False)))
            note(answer, told)
            if told.WhichOneof("type") == "script_finished":
                answer.seconds = time.perf_counter() - start
                return answer


def note(answer: Answer, told: ForwardMsg) -> None:
    """Keep what the next message needs."""
    if told.WhichOneof("type") == "new_session":
        answer.page = told.new_session.page_script_hash
    if told.WhichOneof("type") == "delta" and told.delta.new_element.slider.label == SLIDER:
        answer.widget_id = told.delta.new_element.slider.id
        answer.fragment_id = told.delta.fragment_id


if __name__ == "__main__":
    report(measure)
