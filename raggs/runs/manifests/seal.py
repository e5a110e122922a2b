"""The seal of a manifest: hashes of its own content, by which an edit is found and named. No signature.

Each lock is chained to the one before it (`chain`: the hash of the lock and of the chain so far), the first to the
head of the manifest; configuration, estimates and the ledger's mark have a hash each, and one hash holds all of it. A
seal is over the JSON as it stands in the file, never over the models of this raggs, so that a later version reads it
too.

Whoever can run raggs can seal anything: a seal finds edits, not forgers (see docs/audit.md). It must not mend
anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from raggs.base.hashing import hash_value
from raggs.base.jsontypes import as_object
from raggs.runs.manifests.models import LedgerMark, RunManifest

HEAD = ("schema_version", "name", "pipeline", "created", "raggs")
LATEST = ("config", "config_file")  # both of the latest run

Content = Mapping[str, object]  # a manifest as its JSON says


@dataclass(frozen=True)
class Break:
    """A part of a manifest that is not what raggs wrote.

    Attributes:
        path: of the part, as keys from the root.
        stage: whose lock it is; None for any other part.
        message: what is wrong, as a clause.
    """

    path: tuple[str, ...]
    stage: str | None
    message: str


def sealed(manifest: RunManifest, ledger: LedgerMark) -> dict[str, object]:
    """The JSON of a manifest with its chain and its seal, whatever it held of them before."""
    content: dict[str, object] = manifest.model_dump(mode="json")
    before = _head(content)
    stages: dict[str, object] = {}
    for name, lock in _locks(content):
        before = _link(before, lock)
        stages[name] = {**lock, "chain": before}
    content["stages"] = stages
    seal: dict[str, object] = {**_parts(content), "ledger": ledger.model_dump(mode="json")}
    content["seal"] = seal
    seal["sha256"] = content_hash(content)
    return content


def content_hash(content: Content) -> str:
    """The hash of a manifest's whole content, but for the hash itself."""
    seal = {name: value for name, value in as_object(content.get("seal")).items() if name != "sha256"}
    return hash_value({**content, "seal": seal})


def breaks(content: Content) -> Iterator[Break]:
    """Every part of a manifest that its seal does not fit; nothing for one that was never sealed."""
    seal = as_object(content.get("seal"))
    if not seal:
        if _was_sealed(content):
            yield Break((), None, "the seal was removed: there are traces of it")
        return
    found = [*_chain_breaks(content, seal), *_part_breaks(content, seal)]
    yield from found
    if not found and seal.get("sha256") != content_hash(content):
        yield Break(
            ("seal",), None, "the manifest is not what raggs wrote: its content has another hash than its seal says"
        )


def unsound(content: Content) -> frozenset[str]:
    """The stages whose locks were changed since raggs wrote them."""
    return frozenset(each.stage for each in breaks(content) if each.stage is not None)


def place_of(text: str, path: Sequence[str]) -> int | None:
    """The line, from 1, at which a part begins in a manifest as raggs writes it; None where it is not found."""
    found, lines, depth = None, text.split("\n"), 1
    at = 0
    for depth, key in enumerate(path, start=1):
        start = f"{'  ' * depth}{json.dumps(key, ensure_ascii=False)}:"
        outside = "  " * depth
        while at < len(lines) and not lines[at].startswith(start):
            at += 1
            if found is not None and at < len(lines) and not lines[at].startswith(outside):
                return found
        if at == len(lines):
            return found
        found, at = at + 1, at + 1
    return found


def _chain_breaks(content: Content, seal: Content) -> Iterator[Break]:
    before = str(seal.get("head"))
    if before != _head(content):
        yield Break((), None, f"{', '.join(HEAD)}: one of them was changed since raggs wrote it")
    for name, lock in _locks(content):
        if lock.get("chain") != _link(before, lock):
            message = f"stage {name}: its lock was changed since raggs wrote it, or one before it was added or removed"
            yield Break(("stages", name), name, message)
        before = str(lock.get("chain"))


def _part_breaks(content: Content, seal: Content) -> Iterator[Break]:
    for name, expected in _parts(content).items():
        if name != "head" and seal.get(name) != expected:
            yield Break((name,), None, f"{name} was changed since raggs wrote it")


def _parts(content: Content) -> dict[str, str]:
    return {
        "head": _head(content),
        "config": hash_value([content.get(name) for name in LATEST]),
        "estimates": hash_value(content.get("estimates")),
    }


def _head(content: Content) -> str:
    return hash_value({name: content.get(name) for name in HEAD})


def _link(before: str, lock: Content) -> str:
    return hash_value({"before": before, "lock": {name: value for name, value in lock.items() if name != "chain"}})


def _locks(content: Content) -> Iterator[tuple[str, Content]]:
    for name, lock in as_object(content.get("stages")).items():
        yield name, as_object(lock)


def _was_sealed(content: Content) -> bool:
    return any(lock.get("chain") or lock.get("booked") for _, lock in _locks(content))
