"""What all tests share: a cache folder of their own, and repeatable property tests."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from core.storage import CACHE_VARIABLE

# Shared machines are slow at times; a property that holds must not fail for that.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("suite")


@pytest.fixture(scope="session", autouse=True)
def _own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep tests away from the user's cache; a folder given from outside is used as it is."""
    given = os.environ.get(CACHE_VARIABLE)
    folder = Path(given) if given else tmp_path_factory.mktemp("cache")
    os.environ[CACHE_VARIABLE] = str(folder)
    yield folder
    if not given:
        del os.environ[CACHE_VARIABLE]


#: The groups of tests whose process must stay free of torch, as the server does.
TORCH_FREE = {"page", "browser", "not torch and not page and not browser"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the modules that load torch where their group does not run: collecting is importing."""
    if config.option.markexpr not in TORCH_FREE or collection_path.suffix != ".py":
        return None
    return True if "pytestmark = pytest.mark.torch" in collection_path.read_text() else None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of tests that are not marked `torch` must not have loaded it, whatever else failed."""
    if session.config.option.markexpr in TORCH_FREE and "torch" in sys.modules:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print("\nA test outside the torch group imported torch; the server must never do that.")
