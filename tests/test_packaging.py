"""The metadata of the package agrees with its contents."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import letir

ROOT = Path(__file__).parent.parent
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")
# distributions whose names differ from the modules they provide
DISTRIBUTIONS = {"cupy": "cupy-cuda12x", "cupyx": "cupy-cuda12x"}
# where letir imports an optional package, and the extra that contains it
EXTRAS = {
    "dask": ("letir/dask", "dask"),
    "hypothesis": ("letir/testing", "testing"),
    "llvmlite": ("letir/kernels", "fast"),
    "matplotlib": ("letir/viz", "figures"),
    "networkx": ("letir/ad/remat", "residuals"),
    "onnx": ("letir/onnx", "onnx"),
    "scipy": ("letir/eval", "scipy"),
    "tqdm": ("letir", "progress"),
    "cupy": ("letir/eval", "cuda12"),
    "cupyx": ("letir/eval", "cuda12"),
}


def requirements(text: str) -> set[str]:
    """The names of the distributions in a list of requirements."""
    return {re.split(r"[^\w-]", line)[0] for line in text.split()}


def imported(path: Path, indent: str = " *") -> set[str]:
    """The top-level packages that a file imports, anywhere in it but in long strings.

    Read from its text, as parsing all files takes long. There is one import on a line.
    """
    text = re.sub(r'"""[\s\S]*?"""', "", path.read_text(encoding="utf-8"))
    name = r"([a-zA-Z_]\w*)[\w.]*"
    statement = rf"^{indent}(?:from {name} import |import {name}(?: as \w+)? *(?:#.*)?$)"
    return {a or b for a, b in re.findall(statement, text, re.MULTILINE)}


def imported_at_the_top(path: Path) -> set[str]:
    """The top-level packages that a file imports when it is imported."""
    return imported(path, indent="")


def test_each_import_is_a_requirement_or_in_an_extra():
    required = requirements(SETUP["options"]["install_requires"]) | {"letir"}

    for path in sorted((ROOT / "letir").rglob("*.py")):
        for name in imported(path) - sys.stdlib_module_names - required:
            folder, extra = EXTRAS[name]
            assert path.relative_to(ROOT).as_posix().startswith(f"{folder}/"), (path, name)
            declared = requirements(SETUP["options.extras_require"][extra])
            assert DISTRIBUTIONS.get(name, name) in declared, (path, name)


def test_each_test_file_imports_what_the_extra_test_installs():
    """Unless it asks first, by ``pytest.importorskip``: otherwise pytest stops at the file."""
    declared = requirements(SETUP["options"]["install_requires"]) | {"letir", "tests", "benchmarks"}
    declared |= requirements(SETUP["options.extras_require"]["test"])
    known = declared | sys.stdlib_module_names

    assert [] == [
        f"{path}: {name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for name in imported_at_the_top(path) - known
    ]


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")

    assert letir.__version__ == SETUP["metadata"]["version"]
    assert f"\nversion: {letir.__version__}\n" in citation
    assert f"\n## {letir.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_tested_python_versions_are_the_declared_ones():
    workflow = (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
    declared = re.findall(r"Python :: (3\.\d+)", SETUP["metadata"]["classifiers"])

    assert re.search(r"python: \[(.*)\]", workflow)[1] == ", ".join(f'"{v}"' for v in declared)
    assert SETUP["options"]["python_requires"] == f">={declared[0]}"


def test_building_a_wheel_leaves_nothing_behind(tmp_path):
    pytest.importorskip("setuptools", "77", reason="pip installs it to build letir")
    checkout, wheels = tmp_path / "checkout", tmp_path / "wheels"
    without = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build")
    shutil.copytree(ROOT / "letir", checkout / "letir", ignore=without)
    shutil.copytree(ROOT / "packaging", checkout / "packaging", ignore=without)
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, checkout)
    wheels.mkdir()
    before = sorted(checkout.rglob("*"))
    code = f"import build_backend; print(build_backend.build_wheel({str(wheels)!r}))"

    subprocess.run(
        [sys.executable, "-B", "-c", code],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout / "packaging")},
        check=True,
        capture_output=True,
    )

    assert before == sorted(checkout.rglob("*"))
    (wheel,) = wheels.iterdir()
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        (about,) = [opened.read(name) for name in names if name.endswith("/METADATA")]
    assert b"](https://letir.example/source/docs/numpy.md)" in about
    assert not re.search(rb"\]\((?!https?:)", about), "indexes show the README without our files"
    assert wheel.stat().st_size < 9 << 18
    files = [path for end in ("css", "js") for path in (ROOT / "letir/viz").rglob(f"*.{end}")]
    assert len(files) > 2
    assert {path.relative_to(ROOT).as_posix() for path in files} <= {*names}
    assert "letir/datasets/digits.csv.bz2" in names
    assert not [name for name in names if not name.startswith("letir")]
