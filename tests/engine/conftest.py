"""One processor thread for all tests here: small products gain little from a second, and wait for it."""

import sys

import pytest


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch = sys.modules.get("torch")  # tests without torch must not load it for this
    if torch is not None:
        torch.set_num_threads(1)
