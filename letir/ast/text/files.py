"""Programs in files: ``save_programs`` and ``load_programs``, on which letir.storage stands.

A file is a zip of ``letir.json`` (format, versions of the operations), one text a program, and the
arrays as .npy. Nothing in it is pickled, compressed or dated: equal programs give equal bytes.
Loading imports and executes nothing. A file of another kind, or one that needs unknown operations,
is a ParseError.
"""

import itertools
import json
import math
import os
import re
import secrets
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from attrs import define

from letir.ast.bodies import all_bodies
from letir.ast.builder import freeze
from letir.ast.primitive import Primitive, primitive_named
from letir.ast.terms import Lambda
from letir.ast.text.literals import DTYPES
from letir.ast.text.parser import parse
from letir.ast.text.printer import Printer
from letir.errors import LetirError, ParseError

_FORMAT = 1
MOST_BYTES = 4 << 30
_HEAD = "letir.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that a zip can store
_PROGRAM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # names a member, so it must not be a path
_NPY = b"\x93NUMPY\x01\x00"
# np.load would parse the head as Python; this knows the one form that NumPy writes.
_NPY_HEAD = re.compile(
    r"\{'descr': '([<>|])([biufc][0-9]{1,2})', 'fortran_order': (True|False), "
    r"'shape': \(([0-9, ]*)\), \} *\n"
)
_NPY_DTYPES = frozenset([dtype.str[1:] for dtype in DTYPES.values()])  # without the byte order
_DAMAGED = (  # the exceptions of zipfile and zlib for damaged files
    # RuntimeError: encrypted members; NotImplementedError, a subclass: newer zips
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError),
    *(KeyError, ValueError, OverflowError, IndexError),
)


def save_programs(
    path: str | os.PathLike, programs: Mapping[str, Lambda], about: Mapping | None = None
) -> None:
    """Write programs by name, and JSON data ``about`` them, to one file."""
    arrays: list[np.ndarray] = []
    texts = {}
    for name, fn in programs.items():
        if not _PROGRAM_NAME.fullmatch(name):
            raise LetirError(
                f"{name!r} cannot name a program in a file\n  use letters, digits and _"
            )
        texts[f"{name}.txt"] = "".join(Printer(arrays=arrays).lambda_lines(fn, ""))
    head = {
        "format": _FORMAT,
        "ops": _versions(programs.values()),
        "programs": list(programs),
        "about": dict(about or {}),
    }
    _write(Path(path), {_HEAD: json.dumps(head, indent=1), **texts}, arrays)


def load_programs(
    path: str | os.PathLike, *, max_bytes: int = MOST_BYTES
) -> tuple[dict[str, Lambda], dict]:
    """(programs by name, JSON data about them) from a file.

    Raises ParseError if the file is of another kind, damaged, larger than ``max_bytes``, or needs
    operations that are not registered or have a newer version.
    """
    # opened here, not by zipfile: a missing file is an OSError, not a ParseError
    with open(path, "rb") as stream:
        try:
            archive = zipfile.ZipFile(stream)
        except _DAMAGED as error:
            raise ParseError(
                f"{path} is not a letir file: {error}\n  letir.save(program, path) writes one"
            ) from None
        with archive:
            members = _Members(archive, max_bytes)
            try:
                return _programs(members)
            except ParseError as error:
                error.add_note(f"letir: in {path}, {members.last}")
                raise


def _programs(members: "_Members") -> tuple[dict[str, Lambda], dict]:
    """The result of ``load_programs`` from the members of a file."""
    members.check_sizes()  # first: a bomb is refused before anything is unpacked
    head = _checked_head(members.read(_HEAD))
    names = (f"constants/{i}.npy" for i in itertools.count())
    arrays = [array_from(members.read(name)) for name in itertools.takewhile(members.has, names)]
    programs = {}
    for name in head["programs"]:
        try:
            # Python strings may contain lone surrogates, which UTF-8 cannot encode
            text = members.read(f"{name}.txt").decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise ParseError(f"the text is not UTF-8: {error}") from None
        programs[name] = parse(text, arrays=arrays)
    return programs, head["about"]


@define
class _Members:
    """The members of an open zip; ``left`` is the number of bytes that may still be read."""

    archive: zipfile.ZipFile
    left: int
    last: str = _HEAD  # the last requested member

    def check_sizes(self) -> None:
        """Raise ParseError if the declared sizes of the members exceed the limit."""
        declared = sum(info.file_size for info in self.archive.infolist())
        if declared > self.left:
            raise ParseError(
                f"its members have {declared} bytes, max_bytes allows {self.left}\n"
                "  pass a greater max_bytes if the file is from someone you trust"
            )

    def has(self, name: str) -> bool:
        """Whether there is a member with this name."""
        return name in self.archive.NameToInfo

    def read(self, name: str) -> bytes:
        """The bytes of a member, unpacked up to the limit."""
        self.last = name
        if not self.has(name):
            raise ParseError(
                f"this is not a letir file, or only a part of one: it has no member {name}"
            )
        info = self.archive.getinfo(name)
        # zipfile unpacks bzip2 and lzma without a bound on the result of one read
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ParseError("its compression is not one that save writes, nor deflate")
        try:
            with self.archive.open(info) as stream:
                # the declared size may be a lie: one byte too many reveals it
                content = stream.read(self.left + 1)
        except _DAMAGED as error:
            raise ParseError(f"the file is damaged: {error}") from None
        self.left -= len(content)
        if self.left < 0:
            raise ParseError(
                "it unpacks to more than max_bytes allows\n"
                "  pass a greater max_bytes if the file is from someone you trust"
            )
        return content


def _versions(programs: Iterable[Lambda]) -> dict[str, int]:
    """{operation name: version} for all operations in the programs, nested bodies included."""
    found: dict[str, int] = {}
    for bind in (bind for fn in programs for body in all_bodies(fn) for bind in body.binds):
        found[bind.op.name] = bind.op.version
        # the operation whose rule a grad_of holds
        found.update({v.name: v.version for v in bind.attrs.values() if isinstance(v, Primitive)})
    return dict(sorted(found.items()))  # sorted: the same bytes for equal programs


def _checked_head(content: bytes) -> dict:
    """The header of a file. Raises ParseError for an unknown format or unknown operations."""
    try:
        head = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"it is not JSON: {error}") from None
    match head:
        case {"format": int(version)} if version > _FORMAT:
            raise ParseError(f"it has format {version}, a newer letir's; this one reads {_FORMAT}")
        case {"format": int(), "ops": dict(ops), "programs": list(names), "about": dict()}:
            for name, version in ops.items():
                _check_operation(name, version)
            if all(type(name) is str and _PROGRAM_NAME.fullmatch(name) for name in names):
                return head
    raise ParseError("format, ops, programs or about is missing, or not as letir writes it")


def _check_operation(name: str, version: int) -> None:
    """Raise ParseError unless an operation is registered with at least this version."""
    try:
        here = primitive_named(name).version
    except LetirError as error:
        raise ParseError(str(error)) from None
    if type(version) is not int or version > here:
        owner = name.rpartition(".")[0] or "letir"
        raise ParseError(f"it needs version {version} of {name}, here is {here}: update {owner}")


def array_from(content: bytes) -> np.ndarray:
    """The read-only array of a .npy member as written by NumPy; its header is not evaluated."""
    end = len(_NPY) + 2
    size = int.from_bytes(content[len(_NPY) : end], "little")
    head = _NPY_HEAD.fullmatch(content[end : end + size].decode("latin-1"))
    if not content.startswith(_NPY) or head is None or head[2] not in _NPY_DTYPES:
        raise ParseError("this is not a .npy file of numbers")
    dtype = np.dtype(head[1] + head[2])
    elements = content[end + size :]
    try:
        shape = tuple([int(n) for n in head[4].split(",") if n.strip()])
        if math.prod(shape) * dtype.itemsize != len(elements):
            raise ValueError(f"shape {shape} and {len(elements)} bytes of {dtype} do not fit")
        # NumPy does not check the bytes of booleans, and relies on 0 and 1
        if dtype.kind == "b" and elements.translate(None, b"\0\1"):
            raise ValueError("a bool is neither 0 nor 1")
        is_fortran = head[3] == "True"
        return freeze(np.ndarray(shape, dtype, buffer=elements, order="F" if is_fortran else "C"))
    except ValueError as error:
        raise ParseError(f"the .npy is damaged: {error}") from None


def _write(path: Path, texts: dict[str, str], arrays: list[np.ndarray]) -> None:
    """Write the zip beside ``path``, then rename it: a reader never sees a partial file."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(beside, "xb") as stream, zipfile.ZipFile(stream, "w") as archive:
            for name, text in texts.items():
                archive.writestr(_undated(name), text.encode("utf-8", "surrogatepass"))
            for i, array in enumerate(arrays):
                # zip64: the final size of a member must be declared when it is opened
                with archive.open(_undated(f"constants/{i}.npy"), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
        os.replace(beside, path)
    except BaseException as error:  # also KeyboardInterrupt: leave no temporary file behind
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(beside):
            error = type(error)(error.errno, error.strerror, str(path))  # as the user knows it
            raise error from None
        raise


def _undated(name: str) -> zipfile.ZipInfo:
    """A zip member without the time and the system of its writing."""
    info = zipfile.ZipInfo(name, _EPOCH)
    # 3 is Unix: without it the bytes would depend on the system that wrote them
    info.create_system, info.external_attr = 3, 0o644 << 16
    return info
