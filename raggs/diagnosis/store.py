"""Diagnoses on disk: one folder that contains a report, a page and plots for each kind of diagnosis.

    <kind>.json     the findings, what they depend on, and the hash of each other file; written last
    <kind>.md       the page
    <kind>-*.svg    plots of the page

If a diagnosis with the same causes is stored, it is read instead of measured again. The report contains its own hash.
If the report or another file was edited, the diagnosis is repeated. If writing is interrupted, the report is missing,
or it is an earlier one whose causes or hashes do not match.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from raggs.base.errors import DataError, NotFoundError, RaggsError, UsageError
from raggs.base.files import disk, hash_file, hold_folder, read_whole, remove_leftovers, write_atomic
from raggs.base.hashing import hash_bytes
from raggs.base.types import Notify, ignore_notice
from raggs.diagnosis import REGISTRY
from raggs.diagnosis.base import DIAGNOSE_AGAIN_REMEDY, found_in, other_files, page, plots
from raggs.diagnosis.models import DiagnosisReport

REMEDY = "choose another --out, or check the permissions of the folder"


class DiagnosisStore:
    """Files of one kind of diagnosis in a folder, which is created at the first write.

    Raises:
        UsageError: the folder is a file.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file, not a folder", remedy="pass a folder: --out DIR")
        self.folder, self.kind = folder, kind
        self.path = folder / f"{kind}.json"

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Lock this kind's files for writing.

        Raises:
            BusyError: another process holds the lock.
            ProviderError: the folder cannot be written.
        """
        lock, who = (
            self.folder / f".{self.kind}.lock",
            f"another process of raggs diagnose {self.kind} uses this folder",
        )
        with hold_folder(lock, self.folder, who=who, wait="wait until it ends, or choose another --out", remedy=REMEDY):
            yield

    def report(self) -> DiagnosisReport:
        """Return the stored report.

        Raises:
            NotFoundError: no report is stored.
            DataError: the file is damaged or was edited, or contains another kind of diagnosis.
        """
        return read_report(self.path, self.kind)

    def unchanged(self, causes: str, notify: Notify = ignore_notice) -> DiagnosisReport | None:
        """Return the report if its causes and format match and all of its files are unchanged; else None.

        Args:
            causes: hash of everything that the findings depend on.
            notify: called with a message if the report is damaged or has another format, or if a file was changed.
        """
        try:
            found = self.report()
            found_in(found, self.path)
        except NotFoundError:
            return None
        except DataError as error:
            notify(f"{self.path}: {error.message}, so the diagnosis runs again")
            return None
        if found.causes != causes or not found.seal:
            return None
        if changed := self._changed(found):
            notify(f"{changed}: changed since raggs wrote it, so the diagnosis runs again")
            return None
        return found

    def keep(self, report: DiagnosisReport) -> DiagnosisReport:
        """Write the report with its page, plots and other files; delete files of an earlier report.

        Raises:
            ProviderError: the folder cannot be written.
        """
        drawn = plots(report)
        texts = {f"{self.kind}.md": page(report, drawn), **drawn, **other_files(report)}
        files = {name: hash_bytes(text.encode()) for name, text in texts.items()}
        kept = report.model_copy(update={"files": files}).sealed()
        with disk(self.folder, REMEDY):
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                write_atomic(self.folder / name, text.encode())
            for name in self._named() - texts.keys():
                (self.folder / name).unlink(missing_ok=True)
            for path in self.folder.glob(f"{self.kind}-*.svg"):
                if path.name not in texts:
                    path.unlink()
            write_atomic(self.path, kept.model_dump_json(indent=2).encode() + b"\n")
            for name in (*texts, self.path.name):
                remove_leftovers(self.folder, name)
        return kept

    @property
    def files(self) -> tuple[Path, ...]:
        """The report file, and the files that the report lists."""
        return (self.path, *(self.folder / name for name in self.report().files))

    def _named(self) -> set[str]:
        """Return the files that an earlier report lists."""
        try:
            return {name for name in self.report().files if Path(name).name == name}
        except (NotFoundError, DataError):
            return set()

    def _changed(self, report: DiagnosisReport) -> Path | None:
        """Return the first file that differs from its hash in the report, or None."""
        paths = {self.folder / name: sha256 for name, sha256 in report.files.items()}
        return next((path for path, sha256 in paths.items() if not path.is_file() or hash_file(path) != sha256), None)


def read_report(path: Path, kind: str | None = None) -> DiagnosisReport:
    """Read a report from its file.

    Args:
        path: the file.
        kind: expected kind of diagnosis; None if any kind is allowed.

    Raises:
        NotFoundError: the file does not exist.
        DataError: the file is not a diagnosis, is of another kind, or was edited.
    """
    if not path.is_file():
        raise NotFoundError("no diagnosis found", where=path, remedy=f"raggs diagnose {kind or 'KIND'}")
    try:
        found = DiagnosisReport.model_validate_json(read_whole(path))
    except ValidationError as error:
        raise DataError("not a diagnosis of this version's format", where=path, remedy=DIAGNOSE_AGAIN_REMEDY) from error
    if kind is not None and found.kind != kind:
        raise DataError(f"a diagnosis of {found.kind}, not of {kind}", where=path, remedy=DIAGNOSE_AGAIN_REMEDY)
    if found.seal and found.seal != found.own_hash():
        raise DataError(
            "changed since raggs wrote it: its seal does not match", where=path, remedy=DIAGNOSE_AGAIN_REMEDY
        )
    return found


def read_folder(folder: Path, judgments: str | None) -> tuple[tuple[DiagnosisReport, ...], tuple[str, ...]]:
    """Return the diagnoses of a folder in the order of `raggs list diagnoses`, and a message for each unusable file.

    If several files contain a diagnosis of the same kind, `<kind>.json` is used, or else the first file by name.

    Args:
        folder: the folder.
        judgments: sha256 of the judgments. A diagnosis that used other judgments is unusable. If None, this is not
            checked.

    Raises:
        NotFoundError: the folder does not exist.
    """
    if not folder.is_dir():
        raise NotFoundError("no folder with diagnoses found", where=folder, remedy="raggs diagnose KIND --out DIR")
    found, said = dict[str, DiagnosisReport](), list[str]()
    for path in sorted(folder.glob("*.json"), key=lambda path: (path.stem not in REGISTRY, path)):
        try:
            report = read_report(path)
            found_in(report, path)
        except RaggsError as error:
            said.append(str(error))
            continue
        if report.golden is not None and judgments is not None and report.golden != judgments:
            said.append(f"{path}: a diagnosis of another golden set — {DIAGNOSE_AGAIN_REMEDY}")
        elif report.kind in found:
            said.append(f"{path}: another diagnosis of {report.kind}, which is not used — move it to another folder")
        else:
            found[report.kind] = report
    return tuple(found[name] for name in REGISTRY if name in found), tuple(said)
