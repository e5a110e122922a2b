"""golden.lock: a small file that pins a golden set, suitable for git; and signatures of manifests.

The lock of a run contains the hash of the manifest's content, and the hash and line count of each artifact. Every lock
of a graded set contains a hash and counts of the judgments, which identify exported files, too. It also contains the
definition of each measure, so that scores with different definitions are not compared. The lock shows whether a copy of
a set is the intended one. You can rely on the lock only if others cannot change it.

A signature of a manifest (ed25519, made by the package `cryptography`) proves whose key signed a golden set.

The bytes of manifest.json are signed. They contain the hashes of all artifacts. The signature is stored next to the
manifest in `manifest.sig`: 64 bytes, compatible with openssl. Keys are PEM files. Private keys are never printed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, ValidationError

from raggs.base import __version__
from raggs.base.artifacts import Frozen
from raggs.base.errors import DataError, NotFoundError, PrerequisiteError, UsageError
from raggs.base.files import disk, regular_file, write_atomic
from raggs.base.jsonl import first_fault
from raggs.base.types import TreePath, leaves
from raggs.runs.manifests.models import MANIFEST, AuditFinding, StageLock
from raggs.runs.manifests.open_run import OpenedRun
from raggs.runs.manifests.store import content_hash, place_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


class LockedFile(Frozen):
    """Hash and line count of one artifact."""

    sha256: str
    rows: int = Field(ge=0)


class LockedJudgments(Frozen):
    """Hash and counts of the grades. They are the same for every file format."""

    digest: str = Field(description="sha256 over all judgments, as in eval.json")
    questions: int = Field(ge=0)
    grades: Mapping[str, int] = Field(description="number of passages with each grade")
    relevant: int = Field(description="lowest relevant grade")
    gains: tuple[float, ...] = Field(description="gain of each grade, lowest grade first")


class LockDefinitions(Frozen):
    """The part of a lock that does not depend on files: judgments and measures. Without judgments, `judgments` is null.
    For a run of `raggs questions`, both fields are null.
    """

    judgments: LockedJudgments | None = None
    measures: Mapping[str, str] | None = Field(None, description="definition of each measure, with an example")


class GoldenLock(LockDefinitions):
    """golden.lock: hashes, counts and definitions of a golden set."""

    schema_version: Literal[2] = 2
    name: str = Field(description="name of the run, or of the files")
    raggs: str = Field(description="version of raggs that started the run; for a set in files: that wrote the lock")
    manifest: str = Field(description="hash of the manifest's content, as in its seal; empty for a golden set in files")
    queries: int = Field(ge=0)
    failed: int = Field(ge=0, description="number of judgments without a result")
    files: Mapping[str, LockedFile] = Field(description="artifacts of the run; empty for a golden set in files")


def lock_of(run: OpenedRun, meaning: LockDefinitions) -> GoldenLock:
    """Return the lock of a run. The hashes are copied from the manifest, and only the audit checks whether they are
    correct.

    Args:
        run: the run.
        meaning: the run's judgments and definitions of measures.
    """
    stages: Mapping[str, StageLock] = run.manifest.stages
    files = {
        file: LockedFile(sha256=output.sha256, rows=output.rows)
        for lock in stages.values()
        for file, output in lock.outputs.items()
    }
    return GoldenLock(
        name=run.manifest.name,
        raggs=run.manifest.raggs,
        manifest=content_hash(run.store.content()),
        queries=files["embed.jsonl"].rows if "embed.jsonl" in files else 0,
        failed=sum(lock.failed for lock in stages.values()),
        files=files,
        judgments=meaning.judgments,
        measures=meaning.measures,
    )


def lock_of_files(name: str, meaning: LockDefinitions) -> GoldenLock:
    """Return the lock of a golden set in files of any format. It is made from the judgments only."""
    queries = 0 if meaning.judgments is None else meaning.judgments.questions
    return GoldenLock(
        name=name,
        raggs=__version__,
        manifest="",
        queries=queries,
        failed=0,
        files={},
        judgments=meaning.judgments,
        measures=meaning.measures,
    )


def write_lock(lock: GoldenLock, path: Path) -> None:
    """Write a lock as JSON.

    Raises:
        ProviderError: the file cannot be written.
    """
    with disk(path, "write to another file"):
        write_atomic(
            path,
            json.dumps(lock.model_dump(mode="json", exclude_none=True), indent=2, ensure_ascii=False).encode() + b"\n",
        )


def read_lock(path: Path) -> tuple[GoldenLock, str]:
    """Return a lock and its text.

    Raises:
        NotFoundError: the file is missing or cannot be read.
        DataError: the lock is damaged.
    """
    try:
        text = regular_file(path).read_text(encoding="utf-8")
        return GoldenLock.model_validate_json(text), text
    except OSError as error:
        raise _unreadable("lock", path, error, "create it with raggs audit SET --write-lock FILE") from error
    except ValidationError as error:
        raise DataError(first_fault(error), where=path, remedy="restore it, or write it again") from error
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8", where=path, remedy="restore it, or write it again") from error


def lock_findings(run: OpenedRun, meaning: LockDefinitions, path: Path) -> Iterator[AuditFinding]:
    """Yield the differences between a run and a lock.

    Raises:
        NotFoundError, DataError: see `read_lock`.
    """
    meant, text = read_lock(path)
    if meant.manifest:
        yield from _run_findings(meant, text, lock_of(run, meaning), path)
    yield from meaning_findings(meaning, path)


def _run_findings(meant: GoldenLock, text: str, found: GoldenLock, path: Path) -> Iterator[AuditFinding]:
    """Yield the differences between the artifacts and manifest of a run and those in a lock."""
    for file in sorted({*meant.files, *found.files}):
        wanted, here = meant.files.get(file), found.files.get(file)
        if wanted != here:
            line = place_of(text, ("files", file))
            yield AuditFinding(
                path.name,
                line,
                f"{file} is {_describe_file(here)} in the run, but {_describe_file(wanted)} in the lock",
                "lock",
            )
    for name in ("name", "raggs", "queries", "failed", "manifest"):
        wanted_value, value = getattr(meant, name), getattr(found, name)
        if wanted_value != value:
            what = MANIFEST if name == "manifest" else name
            line = place_of(text, (name,))
            yield AuditFinding(
                path.name,
                line,
                f"{what} is {_shorten_hash(value)} in the run, but {_shorten_hash(wanted_value)} in the lock",
                "lock",
            )


def meaning_findings(
    found: LockDefinitions, path: Path, measures: Container[str] | None = None
) -> Iterator[AuditFinding]:
    """Yield the differences between judgments and measures and those in a lock. Measures that the lock does not contain
    are not compared. If it contains no judgments, judgments are not compared.

    Args:
        found: the judgments and measures to compare with the lock.
        path: path of the lock.
        measures: the measures to compare (default: all in the lock).

    Raises:
        NotFoundError, DataError: see `read_lock`.
    """
    meant, text = read_lock(path)
    wanted_tree, tree = (_leaves(side) for side in (meant, found))
    for place in dict.fromkeys([*wanted_tree, *tree]) if meant.judgments else ():
        if wanted_tree.get(place) != tree.get(place):
            line = place_of(text, ("judgments", *map(str, place[:2])))
            here, wanted_value = (_shorten_hash(side.get(place)) for side in (tree, wanted_tree))
            told = f"judgments: {' '.join(map(str, place))} is {here} here, but {wanted_value} in the lock"
            yield AuditFinding(path.name, line, told, "lock")
    for name, wanted in sorted((meant.measures or {}).items()):
        defined = (found.measures or {}).get(name)
        if wanted != defined and (measures is None or name in measures):
            line = place_of(text, ("measures", name))
            said = f"the measure {name} is {defined or 'missing'!r} here, but {wanted!r} in the lock"
            yield AuditFinding(path.name, line, said, "lock")


def _leaves(side: LockDefinitions) -> dict[TreePath, object]:
    return {} if side.judgments is None else dict(leaves(side.judgments.model_dump(mode="json")))


def _describe_file(file: LockedFile | None) -> str:
    return "missing" if file is None else f"{file.sha256[:12]} ({file.rows:,} lines)"


def _shorten_hash(value: object) -> str:
    text = "missing" if value is None else str(value)
    return text[:12] if len(text) == 64 else text


SIGNATURE = "manifest.sig"
REMEDY = 'pip install ".[sign]" in a clone of raggs'


def make_key(path: Path) -> Path:
    """Create a key pair and return the path of the public key.

    The private key is written to `path`, readable only by its owner. The public key is written next to it with the
    suffix `.pub`.

    Raises:
        UsageError: one of the files exists.
        PrerequisiteError: `cryptography` is not installed.
        ProviderError: the files cannot be written.
    """
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise _missing_cryptography() from error
    public = path.with_name(f"{path.name}.pub")
    for file in (path, public):
        if file.exists():
            raise UsageError(f"{file} exists", remedy="choose another name: raggs never replaces a key")
    key, pem = Ed25519PrivateKey.generate(), serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with disk(path, "write to another file"):
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as stream:
            stream.write(private)
        write_atomic(public, key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return public


def sign(folder: Path, key_file: Path) -> Path:
    """Sign the manifest of the run in `folder` and return the path of the signature.

    Raises:
        NotFoundError, DataError: the key is missing, or is not a private ed25519 key.
        PrerequisiteError: `cryptography` is not installed.
        ProviderError: the signature cannot be written.
    """
    signature = _private(key_file).sign(regular_file(folder / MANIFEST).read_bytes())
    path = folder / SIGNATURE
    with disk(path, "sign a copy of the run"):
        write_atomic(path, signature)
    return path


def signature_finding(folder: Path, key_file: Path) -> AuditFinding | None:
    """Return a finding about the signature of a run, or None if the owner of the key signed this manifest.

    Raises:
        NotFoundError, DataError: the key is missing, or is not a public ed25519 key.
        PrerequisiteError: `cryptography` is not installed.
    """
    key = _public(key_file)
    from cryptography.exceptions import InvalidSignature

    path = folder / SIGNATURE
    if not path.is_file():
        return AuditFinding(SIGNATURE, None, "the run is not signed", "sign")
    try:
        key.verify(path.read_bytes(), regular_file(folder / MANIFEST).read_bytes())
    except InvalidSignature:
        return AuditFinding(
            SIGNATURE, None, f"is not a signature of this {MANIFEST} by the key {key_file.name}", "sign"
        )
    return None


def _private(path: Path) -> Ed25519PrivateKey:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise _missing_cryptography() from error
    try:
        key = load_pem_private_key(_read(path), password=None)
    except (ValueError, TypeError) as error:
        raise _no_key(path, "private") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(path, "private")
    return key


def _public(path: Path) -> Ed25519PublicKey:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError as error:
        raise _missing_cryptography() from error
    try:
        key = load_pem_public_key(_read(path))
    except ValueError as error:
        raise _no_key(path, "public") from error
    if not isinstance(key, Ed25519PublicKey):
        raise _no_key(path, "public")
    return key


def _read(path: Path) -> bytes:
    try:
        return regular_file(path).read_bytes()
    except OSError as error:
        raise _unreadable("key", path, error, "create a key with raggs keygen FILE") from error


def _unreadable(kind: str, path: Path, error: OSError, remedy: str) -> NotFoundError:
    if isinstance(error, FileNotFoundError):
        return NotFoundError(f"the {kind} file does not exist", where=path, remedy=remedy)
    told = f"the {kind} file cannot be read ({error.strerror})"
    return NotFoundError(told, where=path, remedy="pass a file that you may read")


def _no_key(path: Path, kind: str) -> DataError:
    return DataError(
        f"does not contain a {kind} ed25519 key in PEM format without a password",
        where=path,
        remedy="create a key pair with raggs keygen FILE",
    )


def _missing_cryptography() -> PrerequisiteError:
    return PrerequisiteError("signatures need the package cryptography", remedy=REMEDY)
