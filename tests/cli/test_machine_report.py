"""``letir doctor``: a report that never fails, with advice where something can be mended."""

import json
from pathlib import Path

import numpy as np
import pytest

from letir.cli import machine_report as reports
from letir.cli import main
from letir.cli.blas_report import _loaded_files, _openblas_facts, blas_report, core_advice
from letir.kernels.llvm import object_cache

SECTIONS = [
    "letir",
    "python",
    "processor",
    "blas",
    "compiler",
    "cache",
    "costs",
    "device",
    "extras",
]
WITH_AVX512 = ("X86_V2", "AVX2", "AVX512_SKX")


def test_the_report_is_text_with_a_line_for_each_section(capsys):
    assert main(["doctor"]) == 0

    head, _, advice = capsys.readouterr().out.partition("\n\n")
    assert SECTIONS == [line.split()[0] for line in head.splitlines()]
    assert advice


def test_the_report_can_be_printed_as_json(capsys):
    assert main(["doctor", "--json"]) == 0

    report = json.loads(capsys.readouterr().out)
    assert SECTIONS == [*report]
    assert not [facts for facts in report.values() if "error" in facts]
    assert report["processor"]["cores"] >= report["processor"]["usable"] >= 1


def test_a_damaged_package_is_reported(capsys, monkeypatch):
    def fail():
        raise OSError("libblas is damaged")

    monkeypatch.setattr(reports, "blas_report", fail)

    assert main(["doctor"]) == 0
    assert "blas       error OSError: libblas is damaged" in capsys.readouterr().out


def test_a_cache_that_is_turned_off_is_reported(capsys, monkeypatch):
    monkeypatch.setenv("LETIR_CACHE_DIR", "")

    assert main(["doctor"]) == 0
    assert "- kernels are compiled again in each process" in capsys.readouterr().out


def test_the_cache_is_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("LETIR_CACHE_DIR", str(tmp_path / "kernels"))
    object_cache.cached_code(("key",), lambda: b"x" * (1 << 20))

    facts = reports.machine_report()["cache"]
    assert facts == {"folder": str(tmp_path / "kernels"), "kernels": 1, "MiB": 1.0}


def test_openblas_says_for_which_processor_it_computes():
    found = blas_report()
    if "openblas" not in str(found["name"]):
        pytest.skip("NumPy has another BLAS")

    assert found["core"]
    assert found["threads"] >= 1


@pytest.mark.parametrize(
    ("core", "features", "expected"),
    [
        ("Prescott", WITH_AVX512, "OPENBLAS_CORETYPE=SkylakeX"),
        ("Haswell", WITH_AVX512, "OPENBLAS_CORETYPE=SkylakeX"),
        ("Zen", ("X86_V2", "X86_V3"), None),
        ("Nehalem", ("X86_V2", "X86_V3"), "OPENBLAS_CORETYPE=Haswell"),
        ("Sandybridge", ("AVX", "AVX2"), "OPENBLAS_CORETYPE=Haswell"),
        ("Core2", ("AVX",), "OPENBLAS_CORETYPE=Sandybridge"),
        ("SapphireRapids", WITH_AVX512, None),
        ("neoversev1", ("NEON", "SVE"), None),
        ("Prescott", (), None),
        (None, WITH_AVX512, None),
    ],
)
def test_code_for_an_older_processor_is_an_advice(core, features, expected, monkeypatch):
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    found = core_advice(core, features)

    assert (expected is None) == (found is None)
    assert expected is None or (expected in found and f"code for {core} (" in found)


def test_the_advice_says_that_the_environment_chose_the_core(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")

    assert "as OPENBLAS_CORETYPE=Prescott asks" in core_advice("Katmai", WITH_AVX512)


def test_a_file_that_is_no_library_is_left_out(tmp_path):
    damaged = tmp_path / "libopenblas.so"
    damaged.write_text("no library")

    assert _openblas_facts([damaged]) == {}


def test_where_the_system_lists_no_loaded_files_numpys_own_are_searched(tmp_path, monkeypatch):
    """On Windows and macOS."""
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy.libs").mkdir()
    for name in ("libopenblas.so", "libgfortran.so"):
        (tmp_path / "numpy.libs" / name).touch()
    monkeypatch.setattr(np, "__file__", str(tmp_path / "numpy" / "__init__.py"))
    monkeypatch.setattr(Path, "exists", lambda path: False)

    assert [file.name for file in _loaded_files()] == ["libopenblas.so"]
