"""A model's folder: which files are the model, and what their content is.

The model counts by its content: the ONNX file, the files of weights beside it whose names begin as its own does, and
the tokenizer. Where the folder lies does not count.
"""

from __future__ import annotations

import importlib.util
from functools import cached_property
from pathlib import Path

from raggs.base.errors import NotFoundError, PrerequisiteError
from raggs.base.hashing import hash_file, hash_value
from raggs.base.inputs import unreadable

PACKAGES = ("onnxruntime", "tokenizers")  # whose versions can change a number's last digits
TOKENIZER = "tokenizer.json"
USUAL = ("model.onnx", "onnx/model.onnx")
INSTALL = 'pip install "raggs[local]"'
GET = "put a model's ONNX file and its tokenizer.json there; raggs downloads none"


class ModelFolder:
    """A folder, looked into when it is first asked about.

    Args:
        path: of the folder.
        file: the ONNX file in it; None: model.onnx, or onnx/model.onnx.
    """

    def __init__(self, path: Path, file: str | None = None) -> None:
        self.path = path
        self._file = file

    @cached_property
    def model(self) -> Path:
        """The ONNX file.

        Raises:
            NotFoundError: there is none.
        """
        if not self.path.is_dir():
            raise NotFoundError("no folder of a model", where=self.path, remedy=GET)
        names = USUAL if self._file is None else (self._file,)
        found = next((self.path / name for name in names if (self.path / name).is_file()), None)
        if found is None:
            others = sorted(path.relative_to(self.path).as_posix() for path in self.path.rglob("*.onnx"))
            remedy = f"set `file` to one of: {', '.join(others[:5])}" if others else GET
            raise NotFoundError(f"the model's folder has no {' and no '.join(names)}", where=self.path, remedy=remedy)
        return found

    @cached_property
    def tokenizer(self) -> Path:
        """The tokenizer's file, in the folder or beside the model.

        Raises:
            NotFoundError: there is none.
        """
        found = next(
            (place / TOKENIZER for place in (self.path, self.model.parent) if (place / TOKENIZER).is_file()), None
        )
        if found is None:
            raise NotFoundError(
                f"the model's folder has no {TOKENIZER}",
                where=self.path,
                remedy="put the one that the model came with there",
            )
        return found

    @cached_property
    def content(self) -> str:
        """The hash of all that can change what the model gives.

        Raises:
            NotFoundError: a file is missing or unreadable.
        """
        weights = sorted(path for path in self.model.parent.glob(f"{self.model.name}*") if path.is_file())
        files = {path.name.removeprefix(self.model.name): path for path in weights} | {TOKENIZER: self.tokenizer}
        try:
            return hash_value({name: hash_file(path) for name, path in files.items()})
        except OSError as error:
            raise unreadable(error, self.path) from error

    def check(self) -> None:
        """Find what is missing, without loading anything.

        Raises:
            PrerequisiteError: the extra is not installed.
            NotFoundError: a file is missing.
        """
        for package in PACKAGES:
            if importlib.util.find_spec(package) is None:
                raise not_installed(package)
        _ = self.tokenizer


def not_installed(package: str) -> PrerequisiteError:
    """What is said where a package of the extra is missing."""
    return PrerequisiteError(f"{package}, which runs models of this machine, is not installed", remedy=INSTALL)
