"""``Members``: the members of a zip from a stranger, read within limits.

The cost of a refusal is bounded: a file may unpack to at most a hundred times its own size, and
nothing is read that no program refers to.
"""

import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from attrs import define, field

from letir.errors import ParseError

MAX_BYTES = 4 << 30
MAX_TEXT_BYTES = 256 << 20
HEAD = "letir.json"
MAX_HEAD_BYTES = 16 << 20
_MAX_RATIO = 100  # texts of programs shrink to a tenth; a bomb to a thousandth
_ANY_RATIO = 4 << 20  # bytes that a file of any size may unpack to
_MAX_DIRECTORY = 8 << 20  # bytes that list the members; zipfile takes a second for 16 MiB
_CHUNK = 1 << 20
_FULL_OF_SPACE = re.compile(rb"\s*+").fullmatch
_DAMAGED = (  # the exceptions of zipfile and zlib for damaged files
    # RuntimeError: encrypted members; NotImplementedError, a subclass: newer zips
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError),
    *(KeyError, ValueError, OverflowError, IndexError),
)
_TRUST = "if the file is from someone you trust"


class _LimitedStream:
    """A stream that refuses to read a zip directory (the list of members) that is too large."""

    def __init__(self, stream: IO[bytes]):
        self.stream, self.max_bytes = stream, _MAX_DIRECTORY

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        if size > self.max_bytes:
            raise zipfile.BadZipFile(f"the list of its members takes {size} bytes")
        return self.stream.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@define
class Members:
    """The members of an open zip; ``left`` is the number of bytes that may still be read."""

    archive: zipfile.ZipFile
    left: int
    text_left: int
    last: str = HEAD  # the last requested member

    def check(self, file_bytes: int) -> None:
        """Raise ParseError for several members of one name, and for declared sizes beyond the
        limits: nothing is unpacked.
        """
        name, count = next(iter(Counter(self.archive.namelist()).most_common(1)), ("", 0))
        if count > 1:
            raise ParseError(f"{count} of its members are called {name!r}")
        declared = sum(info.file_size for info in self.archive.infolist())
        if declared > self.left:
            raise ParseError(
                f"its members have {declared} bytes, max_bytes allows {self.left}\n"
                f"  pass a greater max_bytes {_TRUST}"
            )
        limit = _MAX_RATIO * file_bytes + _ANY_RATIO
        if declared > limit:
            raise ParseError(
                f"its {file_bytes} bytes unpack to {declared}, more than a hundred times as many\n"
                f"  {_TRUST}, unpack it and zip it again without compression"
            )
        self.left = min(self.left, limit)

    def has(self, name: str) -> bool:
        """Whether there is a member with this name."""
        return name in self.archive.NameToInfo

    def read(self, name: str, limit: int | None = None) -> bytes:
        """The bytes of a member. Raises ParseError if there are too many."""
        with self._member_stream(name) as stream:
            # the declared size may be a lie: one byte too many reveals it
            content = stream.read(min(self.left, self.left if limit is None else limit) + 1)
        self._take(len(content), limit)
        return content

    def read_text(self, name: str) -> str:
        """The text in a member."""
        chunks, count = [], 0
        with self._member_stream(name) as stream:
            while chunk := stream.read(min(_CHUNK, self.left + 1)):
                self._take(len(chunk), None)
                count += len(chunk)
                if count > self.text_left:
                    raise ParseError(
                        f"its texts have more than {self.text_left} bytes\n"
                        f"  pass a greater max_text_bytes {_TRUST}"
                    )
                if len(chunk) == _CHUNK and _FULL_OF_SPACE(chunk):
                    raise ParseError("the text has a mebibyte of white space")
                chunks.append(chunk)
        self.text_left -= count
        try:
            # Python strings may contain lone surrogates, which UTF-8 cannot encode
            return b"".join(chunks).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise ParseError(f"the text is not UTF-8: {error}") from None

    @contextmanager
    def _member_stream(self, name: str) -> Iterator[IO[bytes]]:
        """The stream of a member; errors while it is read become ParseErrors."""
        self.last = name
        if not self.has(name):
            raise ParseError(
                f"this is not a letir file, or only a part of one: it has no member {name}"
            )
        info = self.archive.getinfo(name)
        # zipfile unpacks bzip2 and lzma without a bound on the result of one read
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ParseError("it is compressed by a method that letir.save does not use")
        try:
            with self.archive.open(info) as stream:
                yield stream
        except ParseError:
            raise
        except _DAMAGED as error:
            raise ParseError(f"the file is damaged: {error}") from None

    def _take(self, count: int, limit: int | None) -> None:
        """Count bytes that were read. Raises ParseError beyond the limits."""
        self.left -= count
        if self.left < 0 or (limit is not None and count > limit):
            raise ParseError(
                "it unpacks to more than max_bytes allows, or than a file of its size may\n"
                f"  pass a greater max_bytes {_TRUST}"
            )


@contextmanager
def members_of(path: Any, max_bytes: int, max_text_bytes: int) -> Iterator[Members]:
    """The members of the zip at ``path``. Raises ParseError if it is none, or beyond the limits."""
    # opened here, not by zipfile: a missing file is an OSError, not a ParseError
    with open(path, "rb") as stream:
        cautious = _LimitedStream(stream)
        try:
            archive = zipfile.ZipFile(cautious)  # type: ignore[arg-type]
        except _DAMAGED as error:
            raise ParseError(
                f"{path} is not a letir file: {error}\n  letir.save(program, path) writes one"
            ) from None
        cautious.max_bytes = max_bytes + 1
        members = Members(archive, max_bytes, max_text_bytes)
        with archive:
            try:
                members.check(stream.seek(0, 2))
                yield members
            except ParseError as error:
                error.add_note(f"letir: in {path}, {members.last}")
                raise


@define
class StoredArrays(Sequence):
    """The arrays of a file, each read when a text first refers to it."""

    members: Members
    array_from: Callable[[bytes], np.ndarray]
    loaded: dict[int, np.ndarray] = field(factory=dict)

    def __len__(self) -> int:
        count = len(self.loaded)
        while self.members.has(f"constants/{count}.npy"):
            count += 1
        return count

    def __getitem__(self, index):
        if index not in self.loaded:
            last_read = self.members.last
            self.loaded[index] = self.array_from(self.members.read(f"constants/{index}.npy"))
            self.members.last = last_read  # the text that refers to it
        return self.loaded[index]
