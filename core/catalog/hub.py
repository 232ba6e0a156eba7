"""Fetch a config.json from the Hugging Face hub by its id; optional, and offline it says so."""

from __future__ import annotations

import re
import socket
from importlib import import_module
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies

from core.catalog.hf_config import MAX_CONFIG_CHARACTERS
from core.errors import ConfigError

_ID: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96}")
_SECONDS: Final = 5


def is_hub_id(name: str) -> bool:
    """Whether a name has the form of a hub id, an owner and a model.

    >>> is_hub_id("meta-llama/Llama-3.1-8B"), is_hub_id("llama-3.1-8b"), is_hub_id("/tmp/config.json")
    (True, False, False)
    """
    return _ID.fullmatch(name) is not None


def hub_config(name: str) -> str:
    """The text of a model's config.json, from the hub or from its cache on this machine.

    Raises:
        ConfigError: huggingface_hub is not installed, the hub cannot be reached, or has no such config.
    """
    if not is_hub_id(name):
        raise ConfigError(f"A hub id must have the form owner/model; got {name[:120]!r}. Correct it.")
    try:
        hub = import_module("huggingface_hub")
        endpoint = str(import_module("huggingface_hub.constants").ENDPOINT)
    except ImportError:
        raise ConfigError(
            f"Reading {name} from the hub needs the package huggingface_hub, which is not installed. "
            "Install it, or give the path of the model's config.json."
        ) from None
    try:
        path = Path(
            hub.hf_hub_download(
                name, "config.json", etag_timeout=_SECONDS, local_files_only=not _is_reachable(endpoint)
            )
        )
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as problem:
        raise ConfigError(
            f"The config of {name} must be on the hub and open to read; it could not be fetched. This "
            "machine may be offline, the name mistyped or the model gated: give the path of its config.json."
        ) from problem
    return text[: MAX_CONFIG_CHARACTERS + 1]


def _is_reachable(endpoint: str) -> bool:
    """Whether there is a way to the hub; without one the package would try for half a minute, and say so."""
    if getproxies():  # then the way is the proxy's
        return True
    address = urlsplit(endpoint)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        with socket.create_connection((address.hostname or "", port), timeout=_SECONDS):
            return True
    except OSError:
        return False
