"""A signature of a manifest, for those who need to know who made a golden set: ed25519 by `cryptography`.

What is signed is manifest.json as its bytes are, which holds the hash of everything else. The signature lies beside it
in `manifest.sig`: 64 bytes, as openssl writes and reads them. Keys are PEM files; a private one is never printed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.base.atomic import disk, write_atomic
from raggs.base.errors import DataError, NotFoundError, PrerequisiteError, UsageError
from raggs.base.inputs import regular_file
from raggs.runs.manifests.findings import MANIFEST, Finding

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNATURE = "manifest.sig"
REMEDY = 'pip install "raggs[sign]"'


def make_key(path: Path) -> Path:
    """Make a key pair: the private key at `path`, readable by its owner alone, the public one beside it as `.pub`.

    Raises:
        UsageError: there is such a file already.
        PrerequisiteError: `cryptography` is not installed.
        ProviderError: the files cannot be written.
    """
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise _missing() from error
    public = path.with_name(f"{path.name}.pub")
    for file in (path, public):
        if file.exists():
            raise UsageError(f"{file} exists", remedy="a key is never replaced: choose another name")
    key, pem = Ed25519PrivateKey.generate(), serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with disk(path, "choose another file"):
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as stream:
            stream.write(private)
        write_atomic(public, key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return public


def sign(folder: Path, key_file: Path) -> Path:
    """Sign the manifest of the run in `folder`; the signature's file.

    Raises:
        NotFoundError, DataError: there is no such key, or it is not a private ed25519 key.
        PrerequisiteError: `cryptography` is not installed.
        ProviderError: the signature cannot be written.
    """
    signature = _private(key_file).sign(regular_file(folder / MANIFEST).read_bytes())
    path = folder / SIGNATURE
    with disk(path, "sign a copy of the run"):
        write_atomic(path, signature)
    return path


def signature_finding(folder: Path, key_file: Path) -> Finding | None:
    """What is wrong with the signature of a run; None where the holder of the key signed this very manifest.

    Raises:
        NotFoundError, DataError: there is no such key, or it is not a public ed25519 key.
        PrerequisiteError: `cryptography` is not installed.
    """
    key = _public(key_file)
    from cryptography.exceptions import InvalidSignature

    path = folder / SIGNATURE
    if not path.is_file():
        return Finding(SIGNATURE, None, "the run is not signed", "sign")
    try:
        key.verify(path.read_bytes(), regular_file(folder / MANIFEST).read_bytes())
    except InvalidSignature:
        return Finding(SIGNATURE, None, f"is no signature of this {MANIFEST} by the key {key_file.name}", "sign")
    return None


def _private(path: Path) -> Ed25519PrivateKey:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise _missing() from error
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
        raise _missing() from error
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
        raise NotFoundError("there is no such key", where=path, remedy="raggs keygen FILE makes one") from error


def _no_key(path: Path, kind: str) -> DataError:
    return DataError(
        f"holds no {kind} ed25519 key in PEM without a password", where=path, remedy="raggs keygen FILE makes a pair"
    )


def _missing() -> PrerequisiteError:
    return PrerequisiteError("signatures need the package cryptography", remedy=REMEDY)
