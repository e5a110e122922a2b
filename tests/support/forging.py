"""Runs that were tampered with: edits of a manifest and of artifacts, with or without a mended hash or seal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from raggs.base.hashing import hash_bytes
from raggs.base.jsonl import write_records
from raggs.runs.manifests.models import LedgerMark, RunManifest
from raggs.runs.manifests.store import sealed


def edit_manifest(run: Path, edit: Callable[[dict[str, Any]], object], *, reseal: bool = False) -> None:
    """Change the JSON of a manifest in place, as raggs formats it.

    Args:
        reseal: as a forger would who knows how seals are made.
    """
    path = run / "manifest.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    edit(content)
    if reseal:
        mark = LedgerMark.model_validate((content.get("seal") or {}).get("ledger") or {})
        content = sealed(RunManifest.model_validate(content), mark)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def edit_file(run: Path, name: str, edit: Callable[[bytes], bytes], *, reseal: bool = False) -> None:
    """Change an artifact and mend its hash, lines and bytes, and the inputs of all that was made from it."""
    path = run / name
    data = edit(before := path.read_bytes())
    assert data != before
    path.write_bytes(data)

    def mend(content: dict[str, Any]) -> None:
        for lock in content["stages"].values():
            if name in lock["outputs"]:
                lock["outputs"][name] = {"sha256": hash_bytes(data), "rows": data.count(b"\n"), "bytes": len(data)}
            if name in lock["inputs"]:
                lock["inputs"][name] = lock["components"]["inputs"][name] = hash_bytes(data)
                lock["fingerprint"] = _fingerprint(lock)

    edit_manifest(run, mend, reseal=reseal)


def mend(run: Path) -> None:
    """Make the locks fit the artifacts as they are now, so that readers take them; a folder without a run stays."""
    if not (run / "manifest.json").is_file():
        return

    def fit(content: dict[str, Any]) -> None:
        for lock in content["stages"].values():
            for name in lock["outputs"]:
                if (run / name).is_file():
                    data = (run / name).read_bytes()
                    found = {"sha256": hash_bytes(data), "rows": data.count(b"\n"), "bytes": len(data)}
                    lock["outputs"][name] = found

    edit_manifest(run, fit, reseal=True)
    for sums in (run / ".sums").glob("*.crc32"):
        sums.unlink()


def write_artifact(path: Path, records: Iterable[BaseModel]) -> None:
    """Write an artifact of a run as if its stage had written it."""
    write_records(path, records)
    mend(path.parent)


def _fingerprint(lock: dict[str, Any]) -> str:
    from raggs.base.hashing import hash_value

    return hash_value(lock["components"])
