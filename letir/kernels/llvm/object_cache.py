"""Object code of kernels on disk, so that the next process does not compile them again.

The name of a file is a hash of the LLVM text, the processor and the versions of letir and llvmlite.
A file is written under a temporary name and then renamed, so that no process reads half a file. It
starts with the hash of its contents, so that damaged files are detected and dropped.
"""

import hashlib
import logging
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

_LOG = logging.getLogger("letir")
_MAX_FILES = 4096
_HASH_BYTES = 32


def cached_code(key: tuple[str, ...], compiled: Callable[[], bytes]) -> bytes:
    """The object code for a key: from the cache, or else ``compiled()``, which is then stored."""
    folder = cache_folder(os.environ.get("LETIR_CACHE_DIR"))
    if folder is None:
        return compiled()
    file = folder / hashlib.sha256("\0".join(key).encode()).hexdigest()
    result = _read_file(file)
    if result is None:
        result = compiled()
        _write_file(file, result)
    return result


@cache
def cache_folder(setting: str | None) -> Path | None:
    """The folder of the cache: ``LETIR_CACHE_DIR``, by default in the user's cache folder.

    None if the variable is empty, if the folder cannot be made, or if other users may write to it:
    their code could then run in this process.
    """
    if setting == "":
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(setting) if setting else Path(home) / "letir" / "kernels"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        _LOG.info("no cache of kernels: %s", error)
        return None
    if not _is_private(status):
        _LOG.warning(
            "no cache of kernels in %s: others may write to it\n"
            "  make it writable for you alone, or set LETIR_CACHE_DIR to another folder",
            folder,
        )
        return None
    return folder


def _is_private(status: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user, and nobody else may write to it."""
    if sys.platform == "win32":  # where the user's own folders are not open to others
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _read_file(file: Path) -> bytes | None:
    """The code in a file; None if there is none or it is damaged."""
    try:
        with open(file, "rb") as opened:
            if not _is_private(os.fstat(opened.fileno())):
                return None
            content = opened.read()
    except OSError:
        return None
    with suppress(OSError):  # ``_drop_oldest`` goes by the time of the last use
        os.utime(file)
    code = content[_HASH_BYTES:]
    return code if code and hashlib.sha256(code).digest() == content[:_HASH_BYTES] else None


def _write_file(file: Path, code: bytes) -> None:
    """Write code to a file. Failures are ignored: the next process compiles again."""
    try:
        handle, name = tempfile.mkstemp(dir=file.parent)
        try:
            with os.fdopen(handle, "wb") as opened:
                opened.write(hashlib.sha256(code).digest() + code)
            os.replace(name, file)
        except BaseException:
            os.unlink(name)
            raise
        _drop_oldest(file.parent)
    except OSError as error:
        _LOG.info("a kernel is not kept on disk: %s", error)


def _drop_oldest(folder: Path) -> None:
    """Remove the half of the files that were used longest ago, once there are too many."""
    names = os.listdir(folder)
    if len(names) <= _MAX_FILES:
        return
    by_age = []
    for name in names:
        try:
            by_age.append((os.stat(folder / name).st_mtime, name))
        except OSError:  # another process was faster
            continue
    for _, name in sorted(by_age)[: len(by_age) // 2]:
        try:
            os.unlink(folder / name)
        except OSError:
            continue
