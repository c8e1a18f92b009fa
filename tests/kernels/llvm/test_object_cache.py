"""The cache of object code on disk."""

import logging
import os
import sys
import tempfile

import pytest

from letir.kernels.llvm import object_cache
from letir.kernels.llvm.object_cache import cached_code


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "kernels"
    monkeypatch.setenv("LETIR_CACHE_DIR", str(path))
    return path


def compiling(found=b"code"):
    """A compiler that counts its calls."""

    def compiled():
        compiled.calls += 1
        return found

    compiled.calls = 0
    return compiled


def test_code_is_compiled_once_for_a_key(folder):
    first, other = compiling(), compiling(b"other")

    assert [cached_code(("text", "cpu"), first) for _ in range(3)] == [b"code"] * 3
    assert cached_code(("text", "another cpu"), other) == b"other"
    assert first.calls == other.calls == 1
    assert len(os.listdir(folder)) == 2


def test_damaged_files_are_compiled_again(folder):
    compiled = compiling()
    cached_code(("text",), compiled)
    (name,) = os.listdir(folder)
    for damage in (b"", b"short", (folder / name).read_bytes()[:-1] + b"?"):
        (folder / name).write_bytes(damage)
        assert cached_code(("text",), compiled) == b"code"

    assert compiled.calls == 4


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_folder_that_others_may_write_to_is_refused(folder, caplog):
    folder.mkdir()
    folder.chmod(0o777)
    with caplog.at_level(logging.WARNING, "letir"):
        assert cached_code(("text",), compiling()) == b"code"

    assert "others may write" in caplog.text
    assert os.listdir(folder) == []


def test_an_empty_variable_turns_it_off(monkeypatch, tmp_path):
    monkeypatch.setenv("LETIR_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled = compiling()
    cached_code(("text",), compiled)
    cached_code(("text",), compiled)

    assert compiled.calls == 2
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_not_an_error(monkeypatch, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("LETIR_CACHE_DIR", str(tmp_path / "file" / "kernels"))

    assert cached_code(("text",), compiling()) == b"code"


def test_the_number_of_files_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(object_cache, "_MAX_FILES", 10)
    for n in range(40):
        cached_code((str(n),), compiling())

    assert len(os.listdir(folder)) <= 10


def test_files_that_are_used_stay(folder, monkeypatch):
    monkeypatch.setattr(object_cache, "_MAX_FILES", 10)
    for n in range(10):
        cached_code((str(n),), compiling())
    for n, name in enumerate(sorted(os.listdir(folder))):
        os.utime(folder / name, (n, n))
    used = compiling()
    for n in range(3):
        cached_code((str(n),), used)

    cached_code(("another",), compiling())
    for n in range(3):
        cached_code((str(n),), used)

    assert used.calls == 0
    assert len(os.listdir(folder)) < 10


def test_an_error_of_the_compiler_leaves_nothing(folder):
    def failing():
        raise MemoryError

    with pytest.raises(MemoryError):
        cached_code(("text",), failing)
    assert os.listdir(folder) == []


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_file_that_others_may_write_to_is_not_read(folder):
    compiled = compiling()
    cached_code(("text",), compiled)
    (name,) = os.listdir(folder)
    (folder / name).chmod(0o666)

    assert cached_code(("text",), compiled) == b"code"
    assert compiled.calls == 2


@pytest.mark.parametrize("call", ["mkstemp", "replace"])
def test_a_disk_that_refuses_a_file_costs_another_compile(folder, monkeypatch, caplog, call):
    """A full disk, for example; nothing is left of the file."""
    cached_code(("other",), compiling())

    def refuse(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(tempfile if call == "mkstemp" else os, call, refuse)
    compiled = compiling()
    with caplog.at_level(logging.INFO, "letir"):
        found = [cached_code(("text",), compiled) for _ in range(2)]

    assert (found, compiled.calls, len(os.listdir(folder))) == ([b"code"] * 2, 2, 1)
    assert "a kernel is not kept on disk: no space left" in caplog.text


def test_files_that_another_process_removes_meanwhile_are_no_error(folder, monkeypatch):
    monkeypatch.setattr(object_cache, "_MAX_FILES", 4)
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: [*listed(path), "gone"])
    monkeypatch.setattr(os, "unlink", lambda path: (_ for _ in ()).throw(FileNotFoundError))

    for n in range(6):
        assert cached_code((str(n),), compiling()) == b"code"
    assert len(listed(folder)) == 6
