"""letir.onnx loads on use, and says what to install."""

import subprocess
import sys

import pytest

import letir as lt


def test_import_letir_does_not_import_onnx():
    code = "import letir, sys; print([m for m in sys.modules if 'onnx' in m])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    lt.onnx.package.onnx_package.cache_clear()
    monkeypatch.setitem(sys.modules, "onnx", None)

    with pytest.raises(lt.LetirError, match=r"pip install 'letir\[onnx\]'"):
        lt.onnx.load(b"")

    lt.onnx.package.onnx_package.cache_clear()
