"""Kernels run by the interpreter, which tests every index: LETIR_CHECK_KERNELS=1."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import letir as lt
from letir.errors import InternalError
from letir.executor.compiled import kernels_setting
from letir.kernels.loop_builder import Builder

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.kernels import interpreted_calls
from letir.kernels.interpreter import interpret
from tests.executor.kernels import conftest as fixtures
from tests.executor.kernels import test_loop_kernels as loop_tests
from tests.executor.kernels import test_plan_kernels as plan_tests
from tests.executor.kernels import test_row_kernels as row_tests
from tests.executor.kernels import test_unrolled_kernels as chain_tests

FEW = settings(max_examples=25, suppress_health_check=list(HealthCheck))
everything_pays = fixtures.everything_pays


@pytest.fixture(autouse=True)
def names(monkeypatch):
    """The names of the kernels that the interpreter runs."""
    found = []

    def note(kernel, *args):
        found.append(kernel.name)
        interpret(kernel, *args)

    monkeypatch.setenv("LETIR_CHECK_KERNELS", "1")
    monkeypatch.setattr(interpreted_calls, "interpret", note)
    return found


@pytest.mark.parametrize("name", plan_tests.SAMPLES)
def test_every_kind_of_kernel_stays_within_its_arrays(names, everything_pays, name):
    f, x = plan_tests.SAMPLES[name]
    x = x[:8, :12] if x.ndim > 1 else x
    plan = lt.compile(lt.trace(f, x))
    expected, found = f(x), plan(x)

    assert {kernel.name for kernel in plan.kernels} == set(names)
    assert (expected.dtype, expected.shape) == (found.dtype, found.shape)
    assert np.allclose(expected, found, rtol=1e-12)


@pytest.mark.parametrize("shape", [(3, 1), (1, 4), (1, 1), (4,), ()])
def test_operands_are_broadcast(names, everything_pays, shape):
    x, y = np.arange(12.0).reshape(3, 4), np.full(shape, 2.0) + np.arange(shape[-1] if shape else 1)
    y = y.reshape(shape)
    one, other = (lambda x, y: x * y + 1 - y), (lambda x, y: (x[:, :1] * y + 1) * 2)

    for f in (one, other):
        expected, found = f(x, y), lt.compile(lt.trace(f, x, y))(x, y)
        assert np.shape(expected) == np.shape(found)
        assert np.array_equal(expected, found)
    assert names


@pytest.mark.parametrize("order", "CF")
def test_results_have_the_memory_order_of_a_ufunc(names, everything_pays, order):
    x = np.asarray(np.arange(24.0).reshape(2, 3, 4), order=order)
    program = lt.compile(lt.trace(lambda x, y: x * y + 1.0, x, x))

    for y in (x, x.swapaxes(1, 2).copy().swapaxes(1, 2), x[::-1], x.copy("F")):
        expected, found = x * y + 1.0, program(x, y)
        assert expected.strides == found.strides
        assert np.array_equal(expected, found)
    assert names


@FEW
@given(row_tests.reducing_functions())
def test_kernels_with_reductions_stay_within_their_arrays(drawn):
    f, args = drawn
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row_tests.run_kernels(lt.trace(f, *args), *args)


@FEW
@given(chain_tests.programs())
def test_kernels_of_chains_stay_within_their_arrays(everything_pays, case):
    fn, args = case
    with np.errstate(all="ignore"):
        lt.compile(fn)(*args)


@FEW
@given(loop_tests.loops())
def test_kernels_of_loops_stay_within_their_arrays(everything_pays, case):
    f, args = case
    with np.errstate(all="ignore"):
        lt.compile(lt.trace(f, *args))(*args)


@pytest.mark.parametrize("step, index", [(1, "20000"), (-1, "-1")])
def test_an_index_outside_of_an_array_names_the_bind_and_the_line(monkeypatch, step, index):
    load = Builder.load

    def shifted(self, array, indices, **options):
        at = self.add(indices[-1], self.number(step, "i8"))
        return load(self, array, (*indices[:-1], at), **options)

    monkeypatch.setattr(Builder, "load", shifted)
    x = np.ones(20_000)
    with pytest.raises(InternalError) as caught:
        lt.jit(plan_tests.inverse)(x)

    text = "\n".join([str(caught.value), *caught.value.__notes__])
    assert "= x0[%1] is outside of the array" in text
    assert f"index {index} along axis 0 of 20000 elements" in text
    assert "= kernel(%0)  # test_plan_kernels.py:" in text


def test_warnings_and_errors_equal_numpys():
    x = np.ones(20_000)
    x[3] = 0
    f = lt.jit(plan_tests.inverse)
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):
        f(x)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="in divide"):
        f(x)
    with np.errstate(all="ignore"):
        assert np.isinf(f(x)[3])


def test_results_own_their_memory(names, everything_pays):
    x = np.random.default_rng(4).normal(size=(6, 4, 8))
    f = lt.jit(lambda x: (np.mean(np.exp(x) * 2.0, axis=2), np.tanh(x) * 2.0 + x))

    results = f(x)

    assert names
    assert all(y.flags.owndata and y.base is None for y in results)
