"""Language models that run on this machine, from a folder that the user has: texts in, numbers out, nobody is asked.

A model is a folder with an ONNX file and a tokenizer.json. Nothing is ever downloaded, and torch is never needed: the
extra `local` brings onnxruntime and tokenizers, which are imported when a model is first used.

A model's folder: which files are the model, and what their content is.

The model counts by its content: the ONNX file, the files of weights beside it whose names begin as its own does, and
the tokenizer. Where the folder lies does not count.

A model at work: texts become tokens, tokens become the numbers of one output.

A text alone is worked on as it is; several are padded to the longest and masked, which can change last digits (and, of
a model with quantized activations, more than those), so that whoever wants numbers that hang on one text alone asks for
one at a time. The ONNX runtime raises classes of its own; each becomes a sentence that names the model's file.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from raggs.base.arrays import Ints, Vectors
from raggs.base.errors import DataError, NotFoundError, PrerequisiteError, ProviderError
from raggs.base.files import hash_file, unreadable
from raggs.base.hashing import hash_value
from raggs.base.text import shorten

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

PACKAGES = ("onnxruntime", "tokenizers")  # whose versions can change a number's last digits
TOKENIZER = "tokenizer.json"
DEFAULT_MODEL_FILES = ("model.onnx", "onnx/model.onnx")
INSTALL = 'pip install ".[local]" in a clone of raggs'
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
        names = DEFAULT_MODEL_FILES if self._file is None else (self._file,)
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


QUIET = 4  # of the runtime's log: only what is fatal, which is raised anyway
INTEGER_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
MAX_TEXT_CHARS = 1 << 20  # characters of a text that are looked at; no model reads as many


@dataclass(frozen=True)
class Tokens:
    """A text, or a pair of texts, as a model reads it.

    Attributes:
        ids: of the tokens.
        types: which of both texts (0 or 1) each token is of.
        unseen: how many tokens at the end no token attends to.
    """

    ids: tuple[int, ...]
    types: tuple[int, ...]
    unseen: int = 0

    def __len__(self) -> int:
        return len(self.ids)


class LocalModel:
    """The model of a folder; loaded at first use.

    Args:
        folder: of the model.
        max_length: tokens that it reads of a text or a pair; what is longer is cut, of a pair the longer text first.
        outputs: names of the output that is wanted, the first that there is; else its first one.
        threads: None: as many as there are cores.
    """

    def __init__(
        self, folder: ModelFolder, max_length: int, outputs: Sequence[str] = (), threads: int | None = None
    ) -> None:
        self.folder = folder
        self._max_length = max_length
        self._outputs = outputs
        self._threads = threads

    def encode(self, text: str, other: str | None = None) -> Tokens:
        """A text, or a pair of texts, cut to the model's length.

        Raises:
            PrerequisiteError, NotFoundError, DataError: the tokenizer cannot be loaded.
        """
        tokenizer, second = self._tokenizer, None if other is None else other[:MAX_TEXT_CHARS]
        with self._told("cannot read", shorten(text, 40)):
            found = tokenizer.encode(text[:MAX_TEXT_CHARS], second)
            return Tokens(tuple(found.ids), tuple(found.type_ids))

    def run(self, batch: Sequence[Tokens]) -> tuple[Vectors, Ints]:
        """What the model gives for texts that are read together.

        Returns:
            The output, float32, its first axis one entry a text; and the mask, shape (texts, longest text): 1 where a
            token stands.

        Raises:
            PrerequisiteError, NotFoundError, DataError: the model cannot be loaded.
            ProviderError: it failed, or gave NaN or infinity.
        """
        session, name = self._session, self.output
        mask = np.zeros((len(batch), max(map(len, batch))), dtype=np.int64)
        seen = mask.copy()
        for place, tokens in enumerate(batch):
            mask[place, : len(tokens)] = 1
            seen[place, : len(tokens) - tokens.unseen] = 1
        feed = dict(self._feed(batch, seen))
        with self._told("failed on", f"{len(batch)} texts of up to {mask.shape[1]} tokens"):
            (found,) = session.run([name], feed)
            numbers: Vectors = np.asarray(found, dtype=np.float32)
        if numbers.shape[:1] != (len(batch),):
            raise self._wrong(f"gave {name!r} of shape {numbers.shape} for {len(batch)} texts")
        read = numbers[mask == 1] if numbers.shape[:2] == mask.shape and numbers.ndim > 2 else numbers
        if not np.isfinite(read).all():
            raise self._wrong(f"gave {name!r} with nan or infinity")
        return numbers, mask

    @property
    def size(self) -> int | None:
        """The length of the output's last axis; None where the model does not tell."""
        last = self._shapes[self.output][-1:]
        return last[0] if last and isinstance(last[0], int) else None

    def wrong_output(self, numbers: Vectors, wanted: str) -> ProviderError:
        """What is said of an output that cannot be used."""
        return self._wrong(f"gave {self.output!r} of shape {numbers.shape}, not {wanted}")

    def token(self, text: str) -> int:
        """The id of a token.

        Raises:
            DataError: the tokenizer has none of that name.
        """
        found = self.find(text)
        if found is None:
            raise DataError(
                f"the tokenizer has no token {text!r}", where=self.folder.tokenizer, remedy="name another one"
            )
        return found

    def find(self, text: str) -> int | None:
        """The id of a token; None where there is none."""
        found: int | None = self._tokenizer.token_to_id(text)
        return found

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise not_installed("tokenizers") from error
        file = self.folder.tokenizer
        try:
            found = Tokenizer.from_file(str(file))
            found.no_padding()
            found.enable_truncation(self._max_length)
        except Exception as error:  # the library raises plain ones
            raise DataError(
                f"no tokenizer ({shorten(str(error), 200)})", where=file, remedy="take the one that the model came with"
            ) from error
        return found

    @cached_property
    def _session(self) -> InferenceSession:
        try:
            import onnxruntime
        except ImportError as error:
            raise not_installed("onnxruntime") from error
        options = onnxruntime.SessionOptions()
        options.log_severity_level = QUIET
        if self._threads is not None:
            options.intra_op_num_threads = self._threads
        file = self.folder.model
        try:
            return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # of the runtime's many classes, which have no common one
            raise DataError(
                f"no model that can be run ({shorten(str(error), 200)})", where=file, remedy="export it again to ONNX"
            ) from error

    @cached_property
    def _shapes(self) -> Mapping[str, Sequence[object]]:
        return {output.name: output.shape for output in self._session.get_outputs()}

    @property
    def output(self) -> str:
        """The name of the output that is taken."""
        return next((name for name in self._outputs if name in self._shapes), next(iter(self._shapes)))

    def _feed(self, batch: Sequence[Tokens], mask: Ints) -> Iterator[tuple[str, Ints]]:
        """The model's inputs by name."""
        for wanted in self._session.get_inputs():
            kind = INTEGER_TYPES.get(wanted.type)
            match wanted.name:
                case "input_ids":
                    numbers = _padded((tokens.ids for tokens in batch), mask, self._pad)
                case "attention_mask":
                    numbers = mask
                case "token_type_ids":
                    numbers = _padded((tokens.types for tokens in batch), mask, 0)
                case "position_ids":
                    numbers = np.broadcast_to(np.arange(mask.shape[1], dtype=np.int64), mask.shape)
                case _:
                    kind = None
            if kind is None:
                problem = f"wants the input {wanted.name!r} ({wanted.type}), which no text gives"
                raise DataError(f"the model {problem}", where=self.folder.model, remedy="take a model of texts")
            yield wanted.name, numbers.astype(kind)

    @cached_property
    def _pad(self) -> int:
        """The id of padding, which the mask hides; [PAD] as the tokenizer names it, else 0."""
        names = ("[PAD]", "<pad>", "<|endoftext|>")
        return next((found for name in names if (found := self._tokenizer.token_to_id(name)) is not None), 0)

    @contextmanager
    def _told(self, what: str, about: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # of the runtime's and the tokenizer's many classes
            raise self._wrong(f"{what} {about} ({shorten(str(error), 200)})") from error

    def _wrong(self, problem: str) -> ProviderError:
        remedy = "check that the model and its tokenizer belong together"
        return ProviderError(f"the model {problem}", where=self.folder.model, remedy=remedy)


def _padded(rows: Iterable[Sequence[int]], mask: Ints, pad: int) -> Ints:
    found = np.full(mask.shape, pad, dtype=np.int64)
    for row, values in zip(found, rows, strict=True):
        row[: len(values)] = values
    return found
