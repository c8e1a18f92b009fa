"""The kernels of plans: their binds, lines, bytes, and their texts of every step down."""

import re

import numpy as np
import pytest

import letir as lt
from letir.executor.compiled import kernels_setting

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)

X = np.random.default_rng(3).normal(size=(150, 200))


def inverse(x):
    return (x * 2 + 1) / x


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def scaled_rows(x):
    return x * np.log((x * x).sum(axis=-1, keepdims=True))


def rotated(y):
    for _ in range(30):
        y = y + 0.1 * np.array([y[1], -y[0]])
    return y


def repeated(y):
    return lt.fori_loop(0, 1000, lambda i, y: y + 0.1 * np.sin(y), y)


def in_a_body(x):
    return lt.fori_loop(0, 5, lambda i, h: (h * 0.5 + i) / 1.5, x)


SAMPLES = {
    "elementwise": (inverse, X),
    "rows": (softmax, X),
    "blocks of rows": (scaled_rows, X),
    "unrolled": (rotated, np.ones(2)),
    "loop": (repeated, np.ones(2)),
    "body": (in_a_body, X),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_kernel_has_a_text_for_each_stage_of_compilation(name):
    (kernel,) = lt.compile(lt.trace(*SAMPLES[name])).kernels

    assert f"kernel {kernel.name}(" in kernel.source
    assert "define void @kernel(" in kernel.llvm
    assert re.search(r"^\W*kernel:", kernel.asm, re.MULTILINE)
    assert ".visible .entry kernel(" in kernel.ptx


@pytest.mark.parametrize("name", SAMPLES)
def test_a_kernel_knows_its_binds_types_and_bytes(name):
    f, x = SAMPLES[name]
    (kernel,) = lt.compile(lt.trace(f, x)).kernels

    assert f"kernel of {len(kernel.binds)} operations: " in str(kernel)
    assert {line.partition(":")[0] for line in kernel.lines} == {"test_plan_kernels.py"}
    assert [(x.dtype, x.shape)] == [(kind.dtype, kind.shape) for kind in kernel.results]
    assert kernel.bytes >= 2 * x.nbytes


def test_a_kernel_prints_as_one_line():
    (kernel,) = lt.compile(lt.trace(inverse, X)).kernels

    assert "kernel of 3 operations: mul, add, div; 480,000 bytes" == str(kernel)
    assert f"<{kernel}>" == repr(kernel)


def test_the_plans_of_a_jitted_function_have_kernels():
    f = lt.jit(inverse)
    f(X)
    (plan,) = f.debug_state().plans

    assert ["kernel of 3 operations: mul, add, div; 480,000 bytes"] == list(map(str, plan.kernels))
    assert plan.kernels[0].code is plan.plan.kernels[0].code


def test_the_bytes_of_symbolic_sizes_are_not_known():
    f = lt.jit(inverse, static_shapes=False)
    f(X)
    (kernel,) = f.debug_state().plans[0].kernels

    assert kernel.bytes is None
    assert "kernel of 3 operations: mul, add, div" == str(kernel)


def test_plans_without_kernels_have_none():
    assert () == lt.compile(lt.trace(inverse, X), kernels="off").kernels
    assert () == lt.compile(lt.trace(inverse, X[0])).plan.kernels


def test_explain_names_the_first_kernels():
    def f(x):
        for _ in range(10):
            x = np.sort(inverse(x), axis=None).reshape(x.shape)
        return x

    found = lt.explain(lt.jit(f), X)

    assert 10 == len(found.kernels)
    assert 8 == str(found).count("kernel of 3 operations: mul, add, div")
    assert "\n2 more kernels\n" in str(found)


def test_explain_shows_the_time_of_kernels():
    found = lt.explain(lt.jit(inverse), X)

    assert ["kernel of mul, add, div"] == [group.name for group in found.profile.groups]
    assert 0 < found.profile.groups[0].seconds
    assert "\nplan:\n" in str(found)
    assert "kernel of mul, add, div" in str(found)
    assert lt.explain(lt.jit(inverse, kernels="off"), X).profile is None
