"""Programs in files: ``save_programs`` and ``load_programs``, which letir.storage uses.

A file is a zip of ``letir.json`` (format, versions of the operations), one text a program, and the
arrays as .npy. Nothing in it is pickled, compressed or dated: equal programs give equal bytes.
Loading imports and executes nothing. A file of another kind, or one that needs unknown operations,
is a ParseError.
"""

import json
import math
import os
import re
import secrets
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from letir.ast import with_progress_bar
from letir.ast.attrs import freeze
from letir.ast.bodies import all_bodies
from letir.ast.checker import check
from letir.ast.primitive import Primitive, primitive_named
from letir.ast.terms import Lambda
from letir.ast.text.archive import (
    HEAD,
    MAX_BYTES,
    MAX_HEAD_BYTES,
    MAX_TEXT_BYTES,
    StoredArrays,
    members_of,
)
from letir.ast.text.literals import DTYPES
from letir.ast.text.parser import parse
from letir.ast.text.printer import Printer
from letir.errors import LetirError, ParseError

FORMAT = 1
_MAX_CONTAINERS = 1 << 16
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that a zip can store
_PROGRAM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # names a member, so it must not be a path
_NPY = b"\x93NUMPY\x01\x00"
# np.load would evaluate the header as Python; this matches the one form that NumPy writes.
_NPY_HEAD = re.compile(
    r"\{'descr': '([<>|])([biufc][0-9]{1,2})', 'fortran_order': (True|False), "
    r"'shape': \(([0-9, ]*)\), \} *\n"
)
_NPY_DTYPES = frozenset([dtype.str[1:] for dtype in DTYPES.values()])  # without the byte order


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
        "format": FORMAT,
        "ops": _operation_versions(programs.values()),
        "programs": list(programs),
        "about": dict(about or {}),
    }
    with atomic_file(Path(path)) as stream:
        _write_members(stream, {HEAD: json.dumps(head, indent=1), **texts}, arrays)


@with_progress_bar("loading")
def load_programs(
    path: str | os.PathLike,
    *,
    max_bytes: int = MAX_BYTES,
    max_text_bytes: int = MAX_TEXT_BYTES,
    classes: Iterable[type] = (),
) -> tuple[dict[str, Lambda], dict]:
    """(programs by name, JSON data about them) from a file.

    Raises ParseError if the file is of another kind, damaged, larger than the limits, needs
    operations that are not registered or have a newer version, or if ``check`` refuses a program.
    """
    with members_of(path, max_bytes, max_text_bytes) as members:
        head = _checked_head(members.read(HEAD, MAX_HEAD_BYTES))
        arrays = StoredArrays(members, array_from)
        programs = {}
        for name in head["programs"]:
            program = parse(members.read_text(f"{name}.txt"), arrays=arrays, classes=classes)
            try:
                programs[name] = check(program)
            except LetirError as error:
                raise ParseError(f"its program is not well formed: {error}") from None
        return programs, head["about"]


def _operation_versions(programs: Iterable[Lambda]) -> dict[str, int]:
    """{operation name: version} for all operations in the programs, nested bodies included."""
    result: dict[str, int] = {}
    for bind in (bind for fn in programs for body in all_bodies(fn) for bind in body.binds):
        result[bind.op.name] = bind.op.version
        # the operation whose rule a grad_of holds
        result.update({v.name: v.version for v in bind.attrs.values() if isinstance(v, Primitive)})
    return dict(sorted(result.items()))  # sorted: the same bytes for equal programs


def _checked_head(content: bytes) -> dict:
    """The header of a file. Raises ParseError for an unknown format or unknown operations."""
    if content.count(b"[") + content.count(b"{") > _MAX_CONTAINERS:  # each takes 70 bytes
        raise ParseError("it has too many lists and objects")
    try:
        head = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"it is not JSON: {error}") from None
    match head:
        case {"format": int(version)} if version > FORMAT:
            raise ParseError(f"it has format {version} of a newer letir, this one reads {FORMAT}")
        case {
            "format": int(number),
            "ops": dict(ops),
            "programs": list(names),
            "about": dict(),
        } if number >= 1 and type(number) is int:
            for name, version in ops.items():
                _check_operation(name, version)
            is_named = all(type(name) is str and _PROGRAM_NAME.fullmatch(name) for name in names)
            if is_named and len(set(names)) == len(names):
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
        raise ParseError(f"it needs version {version} of {name}, this has {here}: update {owner}")


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
    except (ValueError, OverflowError, TypeError) as error:
        raise ParseError(f"the .npy is damaged: {error}") from None


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file beside ``path`` to write, which replaces it at the end.

    So a reader never sees a partial file. If writing fails, the file at ``path`` stays as it was.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as stream:
            yield stream
        os.replace(temporary, path)
    except BaseException as error:  # also KeyboardInterrupt: leave no temporary file behind
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(temporary):
            error = type(error)(error.errno, error.strerror, str(path))  # as the user knows it
            raise error from None
        raise


def _write_members(stream: BinaryIO, texts: dict[str, str], arrays: list[np.ndarray]) -> None:
    """Write a zip with a member for each text and array."""
    archive = zipfile.ZipFile(stream, "w")
    try:
        for name, text in texts.items():
            archive.writestr(_undated_member(name), text.encode("utf-8", "surrogatepass"))
        for i, array in enumerate(arrays):
            # zip64: the final size of a member must be declared when it is opened
            with archive.open(
                _undated_member(f"constants/{i}.npy"), "w", force_zip64=True
            ) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
        archive.close()
    except BaseException:
        archive.fp = None  # closed: ``close`` would raise if an interrupt has left a member open
        raise


def _undated_member(name: str) -> zipfile.ZipInfo:
    """A zip member without the time and the system of its writing."""
    info = zipfile.ZipInfo(name, _EPOCH)
    # 3 is Unix: without it the bytes would depend on the system that wrote them
    info.create_system, info.external_attr = 3, 0o644 << 16
    return info
