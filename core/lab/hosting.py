"""Whether this server serves others, and whether a visitor sits at this very computer.

What reaches out from here (a measurement of a server that the visitor names) is for the computer's owner
alone. In doubt the answer is no.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

#: An environment variable that a host sets which serves others: anything but an empty text or 0.
HOSTED_VARIABLE: Final = "LLM_LAB_HOSTED"
#: What a proxy adds to a request on its way; lower case.
_PROXY_HEADERS: Final = ("forwarded", "via", "x-real-ip", "cf-connecting-ip", "true-client-ip")
_PROXY_PREFIX: Final = "x-forwarded"


def is_hosted() -> bool:
    """Whether the host says that it serves others."""
    return os.environ.get(HOSTED_VARIABLE, "").strip() not in {"", "0"}


def is_at_this_computer(address: str, headers: Mapping[str, str]) -> bool:
    """Whether a request came from a browser on this computer, straight and by a local name.

    Args:
        address: that the connection came from; a text that is no address counts as elsewhere.
        headers: of the request. Those that proxies add, and a host name of the outside, count against it:
            a page elsewhere may have its own name point here.

    >>> is_at_this_computer("127.0.0.1", {"Host": "localhost:8501"})
    True
    >>> is_at_this_computer("127.0.0.1", {"Host": "lab.example.org"})
    False
    """
    named = {name.lower(): value for name, value in headers.items()}
    if any(name in _PROXY_HEADERS or name.startswith(_PROXY_PREFIX) for name in named):
        return False
    origin = named.get("origin")  # of the page that opened the connection, where a browser says so
    if origin is not None and not _is_local_name(origin.partition("://")[2]):
        return False
    return _is_loopback(address) and _is_local_name(named.get("host", ""))


def _is_local_name(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return name == "localhost" or _is_loopback(name)


def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    # A socket for both versions of IP writes 127.0.0.1 as ::ffff:127.0.0.1.
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback
