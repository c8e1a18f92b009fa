"""Groups that run as kernels: the results, warnings and errors of NumPy [F8]."""

import threading
import warnings

import numpy as np
import pytest
import scipy.special
from attrs import evolve

import letir as lt
from letir.errors import DTypeError
from letir.executor.compiled import kernels_setting
from letir.kernels.llvm import machine_code
from letir.testing import assert_close, assert_same
from tests.executor.kernels.conftest import changed_costs

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)

X = np.random.default_rng(1).normal(size=(150, 200))
ROW = np.linspace(-1, 1, 200)


def has_kernel(f, *args) -> bool:
    """Whether the plan of a function has a kernel."""
    return any(bind.op.role == "kernel" for bind in lt.compile(lt.trace(f, *args)).plan.binds)


def clipped(x, row, s):
    """Several operations, dtypes and broadcast operands, with two results of one shape."""
    shifted = np.where(x > row, x * s + row, -row / 2)
    return np.maximum(shifted, x), (np.abs(shifted) < 1) & (x != 0), shifted.astype("f4") + 1


def inverse(x):
    return (x * 2 + 1) / x


def test_a_kernel_computes_the_bits_of_numpy():
    assert has_kernel(clipped, X, ROW, 2.0)
    for x in (X, X.T.copy().T, X[::-1]):
        assert_same(clipped(x, ROW, 2.0), lt.jit(clipped)(x, ROW, 2.0))


@pytest.mark.parametrize("dtype", ["f4", "i4", "u1", "i8", "?"])
def test_kernels_of_other_dtypes_compute_the_bits_of_numpy(dtype):
    def f(x, y):
        return (x + y) * y, np.maximum(x, y) >= y, np.where(x > y, x, y) + x

    x, y = (X * 100).astype(dtype), (X[::-1] * 100).astype(dtype)

    assert has_kernel(f, x, y)
    assert_same(f(x, y), lt.jit(f)(x, y))


def test_a_warning_is_numpys_at_the_line_of_the_user():
    x = np.ones(20_000)
    f = lt.jit(inverse)
    f(x)
    x[3] = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f(x)

    (warning,) = caught
    assert "divide by zero encountered in divide" == str(warning.message)
    assert __file__ == warning.filename


def test_errstate_keeps_its_meaning():
    x = np.ones(20_000)
    f = lt.jit(inverse)
    f(x)
    x[3] = 0
    calls = []
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="in divide"):
        f(x)
    with np.errstate(divide="call", call=lambda *given: calls.append(given)):
        f(x)
    with np.errstate(divide="ignore"):
        assert np.isinf(f(x)[3])

    assert [("divide by zero", 1)] == calls


def test_threads_compile_and_run_one_function():
    f, found = lt.jit(inverse), []
    x = np.linspace(1, 2, 30_000)

    def run():
        found.extend([np.array_equal(f(x), inverse(x)) for _ in range(50)])

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [True] * 400 == found


def test_gradients_have_kernels():
    def loss(x):
        return (x * x / (1 + x * x)).sum()

    grad = lt.grad(loss)

    assert has_kernel(grad, X)
    assert np.allclose(grad(X), 2 * X / (1 + X * X) ** 2)
    assert_same(lt.jit(grad, exact=True)(X), lt.run_forward(lt.trace(grad, X), X))


def test_bodies_of_loops_have_kernels():
    def f(x):
        return lt.fori_loop(0, 5, lambda i, h: (h * 0.5 + i) / 1.5, x)

    assert_same(f(X), lt.jit(f)(X))


def test_kernels_are_turned_off(monkeypatch):
    program = lt.trace(inverse, X)

    assert not any(b.op.role == "kernel" for b in lt.compile(program, kernels="off").plan.binds)
    assert not any(b.op.role == "kernel" for b in lt.compile(program, optimize=False).plan.binds)
    monkeypatch.setenv("LETIR_KERNELS", "off")
    assert not has_kernel(inverse, X)
    assert any(b.op.role == "kernel" for b in lt.compile(program, kernels="on").plan.binds)


def test_settings_that_do_not_exist_are_refused(monkeypatch):
    with pytest.raises(DTypeError, match="kernels must be"):
        lt.jit(inverse, kernels="fast")
    monkeypatch.setenv("LETIR_KERNELS", "maybe")
    with pytest.raises(DTypeError, match="LETIR_KERNELS"):
        lt.compile(lt.trace(inverse, X))


def test_one_plan_for_all_sizes_has_kernels():
    f = lt.jit(inverse)
    for n in (20_000, 30_000, 40_000):
        x = np.linspace(1, 2, n)
        assert_same(inverse(x), f(x))

    assert f.counters["compiles"] == 2


def test_explain_names_the_kernels():
    found = lt.explain(lt.jit(inverse), X)

    assert ["mul", "add", "div"] == [bind.op.name for bind in found.kernels[0].binds]
    assert "kernel of 3 operations" in str(found)
    assert lt.explain(lt.jit(inverse, kernels="off"), X).kernels == ()


@pytest.mark.parametrize("is_checked", [True, False])
def test_a_kernel_that_llvm_refuses_is_left_to_numpy(monkeypatch, caplog, is_checked):
    text = machine_code.llvm_text

    def refused(*args):
        module = text(*args)
        return evolve(module, text=module.text.replace("fmul", "none"))

    monkeypatch.setattr(machine_code, "llvm_text", refused)
    monkeypatch.setenv("LETIR_CHECK", str(int(is_checked)))
    f = lt.jit(lambda x: (x * 2 + 1) / x - 3)
    x = np.linspace(1, 2, 30_000)
    if is_checked:
        with pytest.raises(RuntimeError, match="parsing error") as caught:
            f(x)
        assert "letir: while letir kernel mul_add_div_sub was compiled" in caught.value.__notes__
    else:
        assert_same((x * 2 + 1) / x - 3, f(x))
        assert "no kernels, NumPy computes all calls: RuntimeError(" in caplog.text
        assert "mul_add_div_sub" in caplog.text


def larger(x):
    return np.where(x > 1.0, x * 2.34, x) + (x > 0.5)


def scaled(x):
    return (x[:, :20, None] * x[:, None, :10] + 1.23) / 2.0


def shifted(x):
    return (np.roll(x, 1, 0) + np.roll(x, -1, 1)) * 1.23 - x


@pytest.mark.parametrize("f", [larger, scaled, shifted])
def test_a_kernel_that_is_refused_during_a_call_is_left_to_numpy(monkeypatch, caplog, f):
    """A second form: for data with nan, or for operands in another memory order."""

    def refuse(task):
        raise RuntimeError("can't start new thread")

    x = np.linspace(0.0, 2.0, 300 * 200).reshape(300, 200)
    other = np.where(x < 0.1, np.nan, x) if f is larger else np.asfortranarray(x)
    run = lt.compile(lt.trace(f, x))
    assert run.kernels
    assert_same(f(x), run(x))
    monkeypatch.setattr(machine_code, "begin_compilation", refuse)
    monkeypatch.setenv("LETIR_CHECK", "0")

    for _ in range(3):
        assert_same(f(other), run(other))
        assert_same(f(x), run(x))
    assert caplog.text.count("no kernels, NumPy computes all calls: RuntimeError(") == 1


def test_numbers_that_print_alike_do_not_share_a_kernel():
    """Under NumPy's old options for printing, 0.30000000000000004 prints as 0.3."""
    numbers, x = (0.3, 0.1 + 0.2), np.linspace(0, 1, 30_000)
    with np.printoptions(legacy="1.13"):
        found = [lt.jit(lambda x, n=n: (x * n + 1) / 2)(x) for n in numbers]

    for number, result in zip(numbers, found, strict=True):
        assert_same((x * number + 1) / 2, result)


def kernel_count(f, *args) -> int:
    """The number of kernels that the plan of a function calls."""
    return sum(bind.op.role == "kernel" for bind in lt.compile(lt.trace(f, *args)).plan.binds)


def test_small_groups_share_a_kernel_if_they_compute_enough_together():
    """The steps of an unrolled loop: one of them would not be worth a kernel."""
    w = np.eye(400)

    def f(h, count):
        for _ in range(count):
            h = np.tanh(h @ w) * 0.5 + 0.25
        return h

    h = np.linspace(-1, 1, 800).reshape(2, 400)

    assert kernel_count(lambda h: f(h, 3), h) == 0
    assert kernel_count(lambda h: f(h, 20), h) == 20
    np.testing.assert_allclose(lt.jit(lambda h: f(h, 20))(h), f(h, 20), rtol=1e-13)


def test_small_groups_of_different_operands_are_not_counted_together():
    w, h = np.eye(400), np.linspace(-1, 1, 800).reshape(2, 400)

    def f(h, y, period):
        for number in range(16):
            h = (h @ w) * (h if number % period else y) - y
        return h

    assert kernel_count(lambda h, y: f(h, y, 2), h, h + 1) == 0
    assert kernel_count(lambda h, y: f(h, y, 1), h, h + 1) == 16


@pytest.mark.parametrize("f", [np.tanh, np.log, lambda x: x**0.3, np.cbrt])
def test_one_elementary_function_of_a_large_array_is_a_kernel(f):
    """Where NumPy computes it one element at a time, without AVX-512."""
    x = np.abs(X) + 0.5
    program = lt.trace(f, x)

    with changed_costs(compiles_functions=True):
        assert has_kernel(f, x)
        assert_close(f(x), lt.jit(f)(x), rtol=1e-15)
        assert not lt.compile(program, exact=True).kernels
        assert not has_kernel(f, x[:50])
        assert not has_kernel(f, x.astype("f4"))
    with changed_costs(compiles_functions=False):
        assert not has_kernel(f, x)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "f",
    [scipy.special.erf, scipy.special.gammaln, lt.nn.gelu, lt.nn.softplus, np.hypot, np.remainder],
)
def test_a_function_that_numpy_computes_by_element_everywhere_is_a_kernel(f, dtype):
    """Also with AVX-512, of which these loops of NumPy and SciPy make no use."""
    args = [np.abs(X).astype(dtype) + 1] * (2 if isinstance(f, np.ufunc) and f.nin == 2 else 1)

    with changed_costs(compiles_functions=False):
        assert has_kernel(f, *args)
        assert_close(
            np.asarray(lt.jit(f, kernels="off")(*args), "f8"),
            np.asarray(lt.jit(f)(*args), "f8"),
            rtol=4 * np.finfo(dtype).eps,
        )


def test_sines_are_kernels_in_double_precision_only():
    with changed_costs(compiles_functions=False):
        assert has_kernel(np.sin, X)
        assert not has_kernel(np.sin, X.astype("f4"))


@pytest.mark.parametrize("f", [np.sqrt, np.negative, np.floor, lambda x: x > 1])
def test_one_other_operation_is_left_to_numpy(f):
    assert not has_kernel(f, np.abs(X))


def test_one_function_that_is_a_kernel_has_the_warning_of_numpy():
    x = np.ones(20_000)
    x[5] = 0
    with (
        changed_costs(compiles_functions=True),
        pytest.warns(RuntimeWarning, match="divide by zero encountered in log"),
    ):
        assert lt.jit(np.log)(x)[5] == -np.inf


def test_a_polynomial_is_one_kernel():
    assert kernel_count(lambda x: np.polyval([1.0, 2.0, 3.0, 4.0], x), X) == 1


def test_a_sum_in_another_order_does_not_decide():
    """The guard held when it was recorded, but fails in the kernel: the recorded program runs."""
    for seed in range(50):
        x, y = np.random.default_rng(seed).normal(size=(2, 30_000))
        total = (x * y).sum()
        if lt.jit(lambda x, y: (x * y).sum())(x, y) != total:
            break
    else:
        pytest.fail("kernels add in NumPy's order here")
    recordings = []

    def f(x, y):
        recordings.append(1)
        s = (x * y).sum()
        return s if s == total else s + 1000

    assert lt.jit(f)(x, y) == total
    assert len(recordings) == 1  # the Python function did not run again


def test_a_long_group_beside_a_group_with_a_reduction_is_computed_in_pieces():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 20_000))

    def mean_of_last(z):
        x = z[0]
        for row in z:
            x = np.sin(x) * 0.5 + row
        return (x - 0.1 * x * x).mean()

    compiled = lt.compile(lt.trace(mean_of_last, z))

    assert not [bind for bind in compiled.plan.binds if bind.op.role == "fused"]
    assert_close(mean_of_last(z), compiled(z), rtol=1e-12)
