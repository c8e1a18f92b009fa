"""Program files: the round trip, and every way in which an untrusted file may be malformed."""

import gc
import io
import json
import os
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import letir.ops  # noqa: F401  registers all operations
from letir.ast.primitive import PRIMITIVES
from letir.ast.text.files import array_from, load_programs, save_programs
from letir.ast.text.literals import DTYPES
from letir.ast.text.parser import parse
from letir.ast.text.printer import dumps
from letir.errors import LetirError, ParseError
from letir.storage import load, save

TEXT = """\
lambda %0:x: float32[n, 2] in ((*,), {}) out {'y': *} {
  %1: float32[2] = constant(value=float32[2]{1.e+00, nan@7fc00001})  # model.py:3
  %2 = when_defined(%0, n_cts=1, body=lambda %3 {
    %4 = constant(value=complex128[0, 3]{})
    return %3
  })
  %5 = mul(%2, %1)
  return %5
}"""


@pytest.fixture
def path(tmp_path):
    """A file with the program of ``TEXT``."""
    save(parse(TEXT), tmp_path / "f.letir")
    return tmp_path / "f.letir"


def changed(path, **members):
    """Replace members of the file; None removes one."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents |= {name.replace("__", "/").replace("_", "."): c for name, c in members.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            if content is not None:
                archive.writestr(name, content)
    return path


def head(path, **entries):
    """Replace entries of the file's head."""
    with zipfile.ZipFile(path) as archive:
        found = json.loads(archive.read("letir.json"))
    return changed(path, letir_json=json.dumps(found | entries))


def npy(array, **options) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def test_a_saved_program_is_loaded(path):
    """[A5]"""
    assert (load(path), dumps(load(path))) == (parse(TEXT), TEXT)


def test_loaded_constants_are_frozen_and_own_their_memory(path):
    """[A1]"""
    (constant,) = load(path).constants
    flags = constant.attrs["value"].flags

    assert (flags.writeable, flags.owndata) == (False, True)


@pytest.mark.parametrize("kind", sorted(DTYPES))
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 2)])
def test_arrays_of_every_dtype_and_shape_survive(tmp_path, kind, shape):
    """[A5]"""
    out = ", ".join(["complex(nan, -0.0)" if kind.startswith("c") else "1"] * int(np.prod(shape)))
    out = out.replace("1", "True") if kind == "bool" else out
    f = parse(f"lambda {{ %0 = constant(value={kind}{list(shape)}{{{out}}}); return %0 }}")
    save(f, tmp_path / "f")

    assert load(tmp_path / "f") == f


def test_the_path_may_be_a_string(tmp_path):
    save(parse(TEXT), str(tmp_path / "f"))

    assert load(str(tmp_path / "f")) == parse(TEXT)


def test_equal_programs_give_equal_bytes(path, tmp_path):
    save(load(path), tmp_path / "again")

    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_a_file_lists_the_operations_and_versions_that_it_needs(path):
    """[A8]"""
    with zipfile.ZipFile(path) as archive:
        found = json.loads(archive.read("letir.json"))

    assert found["ops"] == {"constant": 1, "mul": 1, "when_defined": 1}


def test_the_operation_inside_a_grad_of_is_listed_too(tmp_path):
    """[A8]"""
    f = parse("lambda %0 { %1 = grad_of[exp](%0) { -> (%0) }; return %1 }")
    save(f, tmp_path / "f")
    with zipfile.ZipFile(tmp_path / "f") as archive:
        found = json.loads(archive.read("letir.json"))

    assert set(found["ops"]) == {"exp", "grad_of"}


def test_several_programs_share_a_file_with_a_note(tmp_path):
    programs = {"f": parse(TEXT), "df": parse("lambda { return 1 }")}
    about = {"captures": [0, 1], "made": "here"}
    save_programs(tmp_path / "f", programs, about)

    assert load_programs(tmp_path / "f") == (programs, about)


def test_a_file_of_several_programs_cannot_be_loaded_as_one(tmp_path):
    save_programs(tmp_path / "f", {"f": parse(TEXT), "g": parse(TEXT)})

    with pytest.raises(ParseError, match="f, g\n  use load_programs"):
        load(tmp_path / "f")


@pytest.mark.parametrize("name", ["", "../f", "a b", "a.b"])
def test_a_program_in_a_file_is_named_by_an_identifier(tmp_path, name):
    with pytest.raises(LetirError, match="cannot name"):
        save_programs(tmp_path / "f", {name: parse(TEXT)})


def test_a_failed_save_leaves_the_old_file_alone(path):
    before = path.read_bytes()
    with pytest.raises(TypeError):
        save_programs(path, {"program": parse(TEXT)}, {"about": object()})

    assert (os.listdir(path.parent), path.read_bytes()) == (["f.letir"], before)


def test_an_interrupted_save_leaves_the_old_file_alone(path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    before = path.read_bytes()
    monkeypatch.setattr(np.lib.format, "write_array", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(parse(TEXT), path)

    assert (os.listdir(path.parent), path.read_bytes()) == (["f.letir"], before)


def test_an_interrupt_that_leaves_a_member_open_is_that_interrupt(path, monkeypatch):
    before, known, members = path.read_bytes(), zipfile.ZipFile.open, []

    def interrupted(*args, **kwargs):
        members.append(known(*args, **kwargs))
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(parse(TEXT), path)
    members.clear()
    gc.collect()  # the finalizers of the archive and its member have nothing to report

    assert (os.listdir(path.parent), path.read_bytes()) == (["f.letir"], before)


def test_source_paths_need_not_be_valid_unicode(tmp_path):
    f = parse("lambda %0 { %1 = neg(%0)  # a\udcff.py:3\n return %1 }")
    save(f, tmp_path / "f")

    assert load(tmp_path / "f").binds[0].source.file == "a\udcff.py"


def test_a_missing_file_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"letir_json": None}, "no member letir.json"),
        ({"program_txt": None}, "no member program.txt"),
        ({"constants__0_npy": None}, "there is no array 0, the file has 0"),
        ({"constants__1_npy": None}, "there is no array 1, the file has 1"),
        ({"letir_json": b"{"}, "is not JSON"),
        ({"letir_json": b"[" * 60_000}, "is not JSON"),
        ({"letir_json": b"[" * 100_000}, "too many lists"),
        ({"letir_json": b"[1]"}, "is missing, or not as letir writes it"),
        ({"letir_json": b"{}"}, "is missing, or not as letir writes it"),
        ({"program_txt": b"\xff"}, "not UTF-8"),
        ({"program_txt": b"import os"}, "expected 'lambda'"),
        ({"program_txt": b"lambda { %0 = my.pkg.op(); return %0 }"}, "import my.pkg first"),
        ({"constants__0_npy": b""}, "not a .npy"),
        ({"constants__0_npy": b"\x93NUMPY\x01\x00\xff\xff"}, "not a .npy"),
        ({"constants__0_npy": npy(np.zeros(2, np.float32))[:-1]}, "do not fit"),
        ({"constants__0_npy": npy(np.zeros(2, np.float32)) + b"\0"}, "do not fit"),
        ({"constants__0_npy": npy(np.zeros(2))}, "float64[2], the text says float32[2]"),
        (
            {"constants__0_npy": npy(np.zeros(3, np.float32))},
            "float32[3], the text says float32[2]",
        ),
        ({"constants__0_npy": npy(np.array([None]), allow_pickle=True)}, "not a .npy"),
        ({"constants__0_npy": npy(np.array(["a"]))}, "not a .npy"),
        ({"constants__0_npy": npy(np.zeros(1, [("a", int)]))}, "not a .npy"),
    ],
)
def test_an_incomplete_file_is_a_parse_error(path, members, message):
    with pytest.raises(ParseError) as raised:
        load(changed(path, **members))

    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"format": 2}, "format 2 of a newer letir"),
        ({"format": "1"}, "is missing, or not as letir writes it"),
        ({"ops": {"mul": 2}}, "needs version 2 of mul, this has 1: update letir"),
        ({"ops": {"mul": "x"}}, "needs version x of mul"),
        ({"ops": {"far.away.op": 1}}, "import far.away first"),
        ({"ops": {"nonsense": 1}}, "'nonsense'"),
        ({"ops": []}, "is missing, or not as letir writes it"),
        ({"programs": ["../../etc/passwd"]}, "is missing, or not as letir writes it"),
        ({"programs": [7]}, "is missing, or not as letir writes it"),
        ({"programs": ["other"]}, "no member other.txt"),
        ({"programs": []}, "use load_programs"),
        ({"about": 7}, "is missing, or not as letir writes it"),
    ],
)
def test_a_malformed_head_is_a_parse_error(path, entries, message):
    """[A8] Newer formats, newer or unknown operations."""
    with pytest.raises(ParseError) as raised:
        load(head(path, **entries))

    assert message in str(raised.value)


def test_an_older_version_of_an_operation_is_accepted(path, monkeypatch):
    """[A8]"""
    monkeypatch.setattr(PRIMITIVES["mul"], "version", 3)

    assert load(path) == parse(TEXT)


def test_loading_imports_nothing(path):
    """[A8]"""
    before = set(sys.modules)
    with pytest.raises(ParseError):
        load(head(path, ops={"this.op": 1}))

    assert set(sys.modules) == before


@pytest.mark.parametrize("content", [b"", b"lambda { return 1 }", b"PK\x03\x04" + bytes(40)])
def test_a_file_that_is_not_a_zip_is_a_parse_error(tmp_path, content):
    (tmp_path / "f").write_bytes(content)

    with pytest.raises(ParseError, match="not a letir file"):
        load(tmp_path / "f")


def test_a_parse_error_names_the_member(path):
    with pytest.raises(ParseError) as raised:
        load(changed(path, program_txt=b"lambda"))

    assert raised.value.__notes__ == [f"letir: in {path}, program.txt"]


def test_members_of_excessive_declared_size_are_not_read(path):
    with pytest.raises(ParseError, match="max_bytes allows 100"):
        load(path, max_bytes=100)


def test_a_member_larger_than_its_declared_size_is_not_unpacked(path):
    """A zip bomb: a megabyte of spaces that declares ten bytes."""
    changed(path, program_txt=b" " * (1 << 20))
    size = (1 << 20).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (10).to_bytes(4, "little")))

    with pytest.raises(ParseError):
        load(path, max_bytes=10_000)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compression_methods_are_refused(path, method):
    """Their decompressors have no limit on the size of the output."""
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("letir.json", "{}")

    with pytest.raises(ParseError, match="compression"):
        load(path)


@pytest.mark.parametrize("shape", ["9" * 19, "999999999999999999, 999999999999999999", "1 1", "-1"])
def test_an_npy_that_declares_a_huge_shape_allocates_nothing(shape):
    content = npy(np.zeros(3)).replace(b"(3,)", f"({shape},)".encode())

    with pytest.raises(ParseError):
        array_from(content)


def test_an_npy_of_booleans_may_only_hold_zeros_and_ones():
    content = npy(np.array([True, False]))

    with pytest.raises(ParseError, match="neither 0 nor 1"):
        array_from(content[:-1] + b"\x02")


@pytest.mark.parametrize("dtype", [">f4", "<c16", ">i2", "|b1"])
def test_npy_arrays_of_any_byte_order_and_memory_order_are_read(dtype):
    array = np.asfortranarray(np.arange(6).reshape(2, 3).astype(dtype))
    found = array_from(npy(array))

    np.testing.assert_array_equal(found, array)
    assert found.dtype.isnative and found.flags.f_contiguous


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_file_loads_or_is_a_parse_error(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    save(parse(TEXT), folder / "whole")
    content = bytearray((folder / "whole").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    (folder / "damaged").write_bytes(content)
    try:
        load(folder / "damaged")
    except ParseError as error:
        assert str(error)
