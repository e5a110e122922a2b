"""Local ONNX models, read from a folder.

A model is a folder with an ONNX file and a tokenizer.json. Nothing is downloaded, and torch is not needed: the extra
`local` installs onnxruntime and tokenizers, which are imported when a model is first used.

A model is identified by its content: the ONNX file, the weight files whose names start with the ONNX file's name, and
the tokenizer. The location of the folder does not matter.

A single text is run without padding. Several texts are padded to the length of the longest one and masked. Padding can
change the last digits of the output, or more digits if the activations are quantized. If an output must depend only on
its text, run one text at a time. The ONNX runtime raises various exceptions; each becomes an error that names the model
file.
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

PACKAGES = ("onnxruntime", "tokenizers")  # packages whose versions may affect the last digits
TOKENIZER = "tokenizer.json"
DEFAULT_MODEL_FILES = ("model.onnx", "onnx/model.onnx")
INSTALL = 'pip install ".[local]" in a clone of raggs'
GET = "add the model's ONNX file and tokenizer.json; raggs does not download models"


class ModelFolder:
    """The folder of a model; read at first use.

    Args:
        path: path of the folder.
        file: name of the ONNX file in the folder; None: model.onnx, or onnx/model.onnx.
    """

    def __init__(self, path: Path, file: str | None = None) -> None:
        self.path = path
        self._file = file

    @cached_property
    def model(self) -> Path:
        """Path of the ONNX file.

        Raises:
            NotFoundError: the file does not exist.
        """
        if not self.path.is_dir():
            raise NotFoundError("model folder not found", where=self.path, remedy=GET)
        names = DEFAULT_MODEL_FILES if self._file is None else (self._file,)
        found = next((self.path / name for name in names if (self.path / name).is_file()), None)
        if found is None:
            others = sorted(path.relative_to(self.path).as_posix() for path in self.path.rglob("*.onnx"))
            remedy = f"set `file` to one of: {', '.join(others[:5])}" if others else GET
            raise NotFoundError(f"the model folder lacks {' or '.join(names)}", where=self.path, remedy=remedy)
        return found

    @cached_property
    def tokenizer(self) -> Path:
        """Path of the tokenizer file, in the folder or next to the model.

        Raises:
            NotFoundError: the file does not exist.
        """
        found = next(
            (place / TOKENIZER for place in (self.path, self.model.parent) if (place / TOKENIZER).is_file()), None
        )
        if found is None:
            raise NotFoundError(
                f"the model folder lacks {TOKENIZER}",
                where=self.path,
                remedy="add the tokenizer of the model",
            )
        return found

    @cached_property
    def content(self) -> str:
        """Hash of all files that affect the output.

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
        """Raise an error if a package or a file is missing, without loading the model.

        Raises:
            PrerequisiteError: the extra is not installed.
            NotFoundError: a file is missing.
        """
        for package in PACKAGES:
            if importlib.util.find_spec(package) is None:
                raise not_installed(package)
        _ = self.tokenizer


def not_installed(package: str) -> PrerequisiteError:
    """Return the error for a missing package of the extra `local`."""
    return PrerequisiteError(f"{package}, which local models need, is not installed", remedy=INSTALL)


QUIET = 4  # log level of the runtime: only fatal errors, which raise an exception anyway
INTEGER_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
MAX_TEXT_CHARS = 1 << 20  # longer texts are truncated before tokenization; no model reads this many characters


@dataclass(frozen=True)
class Tokens:
    """A tokenized text, or pair of texts.

    Attributes:
        ids: token ids.
        types: for each token, the text (0 or 1) to which it belongs.
        unseen: number of final tokens that other tokens do not attend to.
    """

    ids: tuple[int, ...]
    types: tuple[int, ...]
    unseen: int = 0

    def __len__(self) -> int:
        return len(self.ids)


class LocalModel:
    """The model of a folder; loaded at first use.

    Args:
        folder: folder of the model.
        max_length: maximum number of tokens of a text or pair; the longer text of a pair is truncated first.
        outputs: output names in order of preference; default: the first output of the model.
        threads: number of threads; None: one per core.
    """

    def __init__(
        self, folder: ModelFolder, max_length: int, outputs: Sequence[str] = (), threads: int | None = None
    ) -> None:
        self.folder = folder
        self._max_length = max_length
        self._outputs = outputs
        self._threads = threads

    def encode(self, text: str, other: str | None = None) -> Tokens:
        """Return the tokens of a text, or of a pair of texts, truncated to the maximum length.

        Raises:
            PrerequisiteError, NotFoundError, DataError: the tokenizer cannot be loaded.
            ProviderError: the tokenizer failed.
        """
        tokenizer, second = self._tokenizer, None if other is None else other[:MAX_TEXT_CHARS]
        with self._told("cannot read", shorten(text, 40)):
            found = tokenizer.encode(text[:MAX_TEXT_CHARS], second)
            return Tokens(tuple(found.ids), tuple(found.type_ids))

    def run(self, batch: Sequence[Tokens]) -> tuple[Vectors, Ints]:
        """Run the model on a batch of texts.

        Returns:
            The output, float32, whose first axis has one entry per text; and the mask, shape (texts, longest text),
            which is 1 for tokens and 0 for padding.

        Raises:
            PrerequisiteError, NotFoundError, DataError: the model cannot be loaded, or needs an unsupported input.
            ProviderError: the model failed, or returned another number of texts, NaN or infinity.
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
            raise self._wrong(f"returned {name!r} of shape {numbers.shape} for {len(batch)} texts")
        read = numbers[mask == 1] if numbers.shape[:2] == mask.shape and numbers.ndim > 2 else numbers
        if not np.isfinite(read).all():
            raise self._wrong(f"returned {name!r} with NaN or infinity")
        return numbers, mask

    @property
    def size(self) -> int | None:
        """Size of the output's last axis; None if the model file does not contain it."""
        last = self._shapes[self.output][-1:]
        return last[0] if last and isinstance(last[0], int) else None

    def wrong_output(self, numbers: Vectors, wanted: str) -> ProviderError:
        """Return the error for an unusable output."""
        return self._wrong(f"returned {self.output!r} of shape {numbers.shape}, not {wanted}")

    def token(self, text: str) -> int:
        """Return the id of a token.

        Raises:
            DataError: the tokenizer does not have the token.
        """
        found = self.find(text)
        if found is None:
            raise DataError(
                f"the tokenizer has no token {text!r}", where=self.folder.tokenizer, remedy="set another token"
            )
        return found

    def find(self, text: str) -> int | None:
        """Return the id of a token, or None if the tokenizer does not have it."""
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
        except Exception as error:  # the library raises plain Exception
            raise DataError(
                f"not a valid tokenizer ({shorten(str(error), 200)})",
                where=file,
                remedy="use the tokenizer of the model",
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
        except Exception as error:  # the runtime's exceptions have no common base class
            raise DataError(
                f"not a model ({shorten(str(error), 200)})", where=file, remedy="export it to ONNX again"
            ) from error

    @cached_property
    def _shapes(self) -> Mapping[str, Sequence[object]]:
        return {output.name: output.shape for output in self._session.get_outputs()}

    @property
    def output(self) -> str:
        """Name of the model output that is used."""
        return next((name for name in self._outputs if name in self._shapes), next(iter(self._shapes)))

    def _feed(self, batch: Sequence[Tokens], mask: Ints) -> Iterator[tuple[str, Ints]]:
        """Yield the model's inputs by name."""
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
                problem = f"needs the unsupported input {wanted.name!r} ({wanted.type})"
                raise DataError(f"the model {problem}", where=self.folder.model, remedy="use a text model")
            yield wanted.name, numbers.astype(kind)

    @cached_property
    def _pad(self) -> int:
        """Id of the padding token, which the mask hides; 0 if the tokenizer has none."""
        names = ("[PAD]", "<pad>", "<|endoftext|>")
        return next((found for name in names if (found := self._tokenizer.token_to_id(name)) is not None), 0)

    @contextmanager
    def _told(self, what: str, about: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # the runtime and the tokenizer raise various exceptions
            raise self._wrong(f"{what} {about} ({shorten(str(error), 200)})") from error

    def _wrong(self, problem: str) -> ProviderError:
        remedy = "check that the model and its tokenizer belong together"
        return ProviderError(f"the model {problem}", where=self.folder.model, remedy=remedy)


def _padded(rows: Iterable[Sequence[int]], mask: Ints, pad: int) -> Ints:
    found = np.full(mask.shape, pad, dtype=np.int64)
    for row, values in zip(found, rows, strict=True):
        row[: len(values)] = values
    return found
