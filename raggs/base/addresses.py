"""Addresses of servers, checked where they are read: what nobody can connect to is a mistake in a configuration.

It must not look a name up, nor ask a server.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

LABEL = re.compile(r"[^\W_](?:[\w-]{0,61}\w)?|_[\w-]{1,62}")  # one part of a host's name, of any script
WRONG = re.compile(r"[\s\x00-\x1f\x7f<>\"{}|\\^`]")  # what stands in no address
EXAMPLE = "not an address such as https://host.example:8000/v1"


def http_address(text: str) -> str:
    """`text`, if a server of HTTP could be there.

    Raises:
        ValueError: it could not: another protocol, no host, or a port that is none.
    """
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ""
    except ValueError as error:
        raise ValueError(f"{EXAMPLE} ({str(error).rstrip('.')})") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{EXAMPLE} (it begins with neither http:// nor https://)")
    if WRONG.search(text) or parts.fragment:
        raise ValueError(f"{EXAMPLE} (a character in it is none of an address)")
    labels = host.removesuffix(".").split(".")
    if len(host) > 253 or not (":" in host or all(LABEL.fullmatch(label) for label in labels)):
        raise ValueError(f"{EXAMPLE} (it names no host)")
    if port == 0 or parts.netloc.rpartition("@")[2].endswith(":"):
        raise ValueError(f"{EXAMPLE} (a port is a number in 1 to 65535)")
    return text
