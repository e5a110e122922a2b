"""What people said of passages: kept for good, one line a judgment, and folded to what holds now."""

from __future__ import annotations

from pathlib import Path

FOLDER = "reviews"


def beside(workspace: Path) -> Path:
    """Where the reviews of the runs in `workspace` are kept, if nobody says otherwise: in a folder beside it."""
    return workspace.resolve().parent / FOLDER
