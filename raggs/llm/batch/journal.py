"""Which questions lie in which batch, on disk: so that a killed run waits for the batch it sent and sends no other.

One small file for each batch, written whole and flushed before the batch is sent, again when the provider has named
it, and deleted when every answer is in the cache or asked for anew. One process at a time holds the folder.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from raggs.base.atomic import remove_leftovers, write_atomic
from raggs.base.errors import BusyError, ProviderError

LOCK = ".lock"
BATCHES = "batches"  # the folder of all journals, in that of the cache


@dataclass(frozen=True)
class SentBatch:
    """A batch: our token for it, when it was sent (seconds of the epoch), its keys, the provider's id once known."""

    token: str
    since: float
    keys: tuple[str, ...]
    batch_id: str | None = None


class BatchJournal:
    """The batches noted in `folder`, which is made and locked.

    Raises:
        BusyError: another process waits for batches of the same model in this workspace.
        ProviderError: the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(folder / LOCK, timeout=0)
            self._lock.acquire()
        except Timeout:
            raise BusyError(
                "another raggs run waits for batches of this model", where=folder, remedy="wait for it to end"
            ) from None
        except OSError as error:
            raise ProviderError(
                f"cannot be used ({error.strerror})", where=folder, remedy="check the folder's permissions"
            ) from None
        remove_leftovers(folder)

    def batches(self) -> list[SentBatch]:
        """All batches, the oldest first.

        Raises:
            ProviderError: one is damaged.
        """
        return sorted(map(self.read, self.folder.glob("*.json")), key=lambda batch: batch.since)

    def put(self, batch: SentBatch) -> None:
        """Note a batch, in place of what was known of it."""
        write_atomic(self.path(batch.token), json.dumps(asdict(batch)).encode())

    def drop(self, token: str) -> None:
        """Forget a batch."""
        self.path(token).unlink(missing_ok=True)

    def path(self, token: str) -> Path:
        """The note of the batch that bears `token`."""
        return self.folder / f"{token}.json"

    def close(self) -> None:
        """Let another process have the folder."""
        self._lock.release()

    @staticmethod
    def read(path: Path) -> SentBatch:
        """A note.

        Raises:
            ProviderError: it is damaged.
        """
        try:
            found = json.loads(path.read_bytes())
            return SentBatch(
                str(found["token"]), float(found["since"]), tuple(map(str, found["keys"])), found["batch_id"]
            )
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            raise ProviderError(
                "this note of a batch is damaged", where=path, remedy="delete it; its questions are then asked again"
            ) from None


def noted(folder: Path) -> dict[str, Path]:
    """Return every key that lies in a batch which was sent and is not fetched, with its note, from `folder`'s journals.

    Raises:
        ProviderError: a note is damaged, so that its keys are not known and could be paid twice.
    """
    found: dict[str, Path] = {}
    for path in folder.glob("*/*.json"):
        try:
            batch = BatchJournal.read(path)
        except ProviderError:
            if path.exists():  # else its batch was fetched in between
                raise
            continue
        found.update(dict.fromkeys(batch.keys if batch.batch_id is not None else (), path))
    return found
