"""How much memory there is, so that what will not fit is told before it is begun."""

from __future__ import annotations

import os
import re
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def available() -> int | None:
    """Bytes that this process can still get, by the machine and by its container's limit; None where none tells."""
    found = [size for size in (_of_machine(), _of_container()) if size is not None]
    return min(found, default=None)


def in_words(size: float) -> str:
    """A number of bytes for a person: "3.8 GiB"."""
    power = 0
    while size >= 1024 and power < len(UNITS) - 1:
        size, power = size / 1024, power + 1
    return f"{size:.1f} {UNITS[power]}" if power else f"{size:.0f} B"


def _of_machine() -> int | None:
    try:
        told = re.search(r"^MemAvailable:\s+(\d+) kB", MEMINFO.read_text(), re.MULTILINE)
    except OSError:
        told = None
    return int(told[1]) * 1024 if told else _of_system()


def _of_system() -> int | None:
    """All of the machine's memory, where the system does not say what is free (macOS)."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def _of_container() -> int | None:
    """What the limit of a container (cgroup 2) leaves; pages of files that it could drop count as free."""
    try:
        limit = int((CGROUP / "memory.max").read_text())  # "max" is no number: no limit
        used = int((CGROUP / "memory.current").read_text())
        droppable = re.search(r"^inactive_file (\d+)", (CGROUP / "memory.stat").read_text(), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return max(limit - used + (int(droppable[1]) if droppable else 0), 0)
