"""PTX of kernels: assembled by NVIDIA's ptxas, and what its instructions are."""

import importlib.metadata
import itertools
import re
import shutil
import subprocess

import numpy as np
import pytest

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.kernels.elementary import ELEMENTARY
from letir.kernels.elementwise_groups import elementwise_kernel
from letir.kernels.few_columns import row_kernel
from letir.kernels.flat_arrays.array_loops import array_loop
from letir.kernels.interpreter import run_lets
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel
from letir.kernels.row_passes import Space
from letir.kernels.scalar_forms import _FORMS, form_of
from letir.kernels.unrolled_groups import unrolled_kernel

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.kernels.device.float_remainder import remainder_function
from letir.kernels.device.ptx import LaunchForm, ptx_text
from tests.kernels.device.test_device_calls import LOOPS
from tests.kernels.llvm.test_machine_code import kernel_of_instruction, scaled_and_shifted
from tests.kernels.test_interpreter import halvings, weighted_totals

X = np.ones((4, 5))


def forms_of(dtype: str) -> Kernel:
    """A kernel of all scalar forms that take operands of a dtype, each with a result."""
    b = Builder()
    n = b.extent("n")
    arrays = [Array(f"x{k}", np.dtype(dtype), ("n",)) for k in range(3)]
    with b.loop(n) as i:
        values = [b.load(x, (i,)) for x in arrays]
        for name, arity in itertools.product([*_FORMS, *ELEMENTARY], (1, 2, 3)):
            try:
                found = form_of(name)(b, *values[:arity])
            except TypeError:
                continue
            arrays.append(Array(f"y{len(arrays)}", found.dtype, ("n",), True))
            b.store(arrays[-1], (i,), found)
        for other in "?bhilBHILfd":
            if np.dtype(dtype).kind != "f" or other in "fd":
                arrays.append(Array(f"y{len(arrays)}", np.dtype(other), ("n",), True))
                b.store(arrays[-1], (i,), b.convert(values[0], other))
    return Kernel(f"forms of {dtype}", tuple(arrays), (n,), b.statements())


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def reductions(x):
    y = x * x - 1
    return y.sum(axis=1), y.mean(axis=0), y.max(), (y > 3).any(axis=1), y.min(axis=0), y.prod()


def rotated(y):
    for _ in range(30):
        y = y + 0.1 * np.array([np.sin(y[1]), -y[0]])
    return y


def row_kernel_of(f, dtype: str) -> Kernel:
    return row_kernel(lt.trace(f, X.astype(dtype)), Space(X.shape, 0, 1)).kernel


def array_loop_kernel() -> Kernel:
    f, args = LOOPS["products"]
    program = lt.trace(f, *args)
    (bind,) = [one for one in program.binds if one.op.name == "scan"]
    return array_loop(bind).kernel


def sample_texts() -> list[str]:
    """PTX of kernels of every kind, with every scalar form in every dtype."""
    kernels = [forms_of(dtype) for dtype in "?biBLfd"]
    kernels += [row_kernel_of(f, d) for f in (softmax, reductions) for d in ("f4", "f8")]
    kernels.append(unrolled_kernel(lt.trace(rotated, np.ones(2)))[0])
    kernels += [halvings(), weighted_totals(), array_loop_kernel()]
    forms = [LaunchForm(), LaunchForm(3, frozenset("z"))]
    return [*map(ptx_text, kernels), *[ptx_text(scaled_and_shifted(), form) for form in forms]]


def assembler() -> str | None:
    """The path of ptxas: of the CUDA toolkit, or of the package that has it."""
    found = shutil.which("ptxas")
    try:
        files = importlib.metadata.files("nvidia-cuda-nvcc-cu12") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    return found or next((str(f.locate()) for f in files if f.name == "ptxas"), None)


def joined(texts: list[str]) -> str:
    """One text with the functions of all, renamed."""
    (head, _), found = texts[0].split(".address_size 64"), []
    for n, text in enumerate(texts):
        body = text.split(".address_size 64")[1]
        for name in set(re.findall(r"^(?:\.visible \.entry|\.func.*?) (\w+)\($", body, re.M)):
            body = re.sub(rf"\b{name}(?=\b|_param)", f"k{n}_{name}", body)
        found.append(body)
    return "\n".join([f"{head}.address_size 64", *found])


def test_ptxas_assembles_every_sample(tmp_path):
    ptxas = assembler()
    if ptxas is None:
        pytest.skip("ptxas is not installed")
    file = tmp_path / "kernels.ptx"
    texts = sample_texts()
    file.write_text(joined(texts))

    command = [ptxas, "-O0", "-arch", "sm_80", str(file), "-o", str(tmp_path / "kernels.cubin")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=1200)

    assert (0, "") == (done.returncode, done.stderr)
    assert not re.search(
        r"\b(add|sub|mul|div|sqrt|fma)\.(?!rn)\w*\.?f(32|64)|approx|ftz", joined(texts)
    )
    assert len(texts) == joined(texts).count(".visible .entry")


def test_each_operation_is_rounded():
    """No two are contracted to one with a single rounding, none is approximate."""
    kernel = elementwise_kernel(lt.trace(lambda x, y: np.sqrt(x * y + x) / y, X, X))
    text = ptx_text(kernel)

    for name in ("mul", "add", "sqrt", "div"):
        assert f"{name}.rn.f64" in text
    assert not re.search(r"fma|approx|ftz|full", text)


def test_the_entry_names_no_more_than_it_needs():
    text = ptx_text(scaled_and_shifted(), LaunchForm(2, frozenset("z")))
    head = text[text.index(".entry") : text.index("{")]

    # x, z and y; the total, one length, and two strides for x and y each
    assert 9 == head.count(".param") and ".f64" in head
    assert "%ctaid.x" in text


def test_equal_kernels_are_compiled_once(tmp_path, monkeypatch):
    monkeypatch.setenv("LETIR_CACHE_DIR", str(tmp_path / "kernels"))
    found = ptx_text(scaled_and_shifted(17.0))

    assert ptx_text(scaled_and_shifted(17.0)) is found
    (file,) = (tmp_path / "kernels").iterdir()  # for the next process
    assert file.read_bytes().endswith(found.encode())
    assert ptx_text(scaled_and_shifted(2.0)) != ptx_text(scaled_and_shifted())


def test_a_remainder_is_a_separate_function():
    assert "div" not in ptx_text(kernel_of_instruction("fmod", ("f8", "f8")))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_remainder_of_floats_is_exact(dtype):
    limits = np.finfo(dtype)
    special = [0.0, -0.0, 1.0, -3.5, 0.1, 7.0, np.inf, np.nan, limits.max, limits.tiny]
    values = np.array([*special, limits.smallest_subnormal, 3 * limits.smallest_subnormal], dtype)
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=6) * 10.0 ** rng.integers(-30, 30, size=6)
    values = np.concatenate([values, drawn.astype(dtype)])
    function = remainder_function(np.dtype(dtype))

    for x, y in itertools.product(values, values):
        found = run_lets(function.body, dict(zip(function.params, (x, y), strict=True)))
        with np.errstate(all="ignore"):
            expected = np.fmod(x, y)
        assert np.array_equal(expected, found[function.result], equal_nan=True), (x, y)
        assert np.isnan(expected) or np.signbit(expected) == np.signbit(found[function.result])
