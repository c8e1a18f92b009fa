"""Kernels that compute residuals again: the results, the warnings and the memory."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.testing import assert_close, assert_same

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.executor.kernels import group_kernels

RNG = np.random.default_rng(9)
N, K, D = 3_000, 6, 10
X, CENTRES, SCALES = RNG.normal(size=(N, D)), RNG.normal(size=(K, D)), RNG.random((K, D)) + 0.5


def loss(centres, scales, x):
    """Residuals of (n, k, d): differences, and their quotients."""
    d = (x[:, None, :] - centres) / scales
    return np.log(np.exp(-0.5 * (d * d).sum(axis=2)).sum(axis=1)).mean()


def elementwise(x, y):
    """Two elementwise groups, with a product of matrices between them."""
    u = x - 2.0
    v = np.tanh(u)
    return u * (v @ y) + 1.0


gradient = lt.value_and_grad(loss, argnums=(0, 1))


def without_recomputation(monkeypatch, f):
    """A compiled function whose kernels store their residuals."""
    with monkeypatch.context() as patch:
        patch.setattr(group_kernels, "recompute_residuals", lambda fn, *tests: (fn, {}))
        return f()


def values_of(plan, shape: tuple) -> int:
    """The number of arrays of a shape that the binds of a plan make."""
    kinds = [binder.type for bind in plan.binds for binder in bind.binders]
    return sum([kind.shape == shape for kind in kinds])


def test_a_mixtures_gradient_stores_no_differences(monkeypatch):
    def compiled():
        return lt.compile(lt.trace(gradient, CENTRES, SCALES, X))

    stored, again = without_recomputation(monkeypatch, compiled), compiled()

    assert [1, 0] == [values_of(one.plan, (N, K, D)) for one in (stored, again)]
    # LLVM may add in another order in a kernel that stores less
    assert_close(stored(CENTRES, SCALES, X), again(CENTRES, SCALES, X), rtol=1e-12)
    peaks = [one.plan.memory().peak for one in (stored, again)]
    assert peaks[1] < peaks[0] / 3


def test_elementwise_groups_around_a_product_share_their_operand(monkeypatch):
    x, y = RNG.normal(size=(200, 300)), RNG.normal(size=(300, 300))

    def compiled():
        return lt.compile(lt.trace(elementwise, x, y))

    stored, again = without_recomputation(monkeypatch, compiled), compiled()

    assert values_of(again.plan, (200, 300)) < values_of(stored.plan, (200, 300))
    assert_same(stored(x, y), again(x, y))


def test_the_bits_do_not_depend_on_threads():
    args = RNG.normal(size=(12, D)), RNG.random((12, D)) + 0.5, RNG.normal(size=(20_000, D))
    found = []
    for threads in (1, 2):
        lt.set_num_threads(threads)
        try:
            found.append(lt.jit(gradient)(*args))
        finally:
            lt.set_num_threads(None)

    assert_same(*found)
    assert_close(lt.run_forward(lt.trace(gradient, *args), *args), found[0], rtol=1e-9)


def test_a_warning_comes_once_and_an_error_names_the_operation(monkeypatch):
    scales = SCALES.copy()
    scales[2, 3] = 0.0

    def caught(fast):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            fast(CENTRES, scales, X)
        return [(str(w.message), w.lineno) for w in found]

    fast = lt.jit(gradient)
    stored = without_recomputation(monkeypatch, lambda: caught(lt.jit(gradient)))

    assert stored == caught(fast)
    assert 1 == [text for text, _ in stored].count("divide by zero encountered in divide")
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        fast(CENTRES, scales, X)


@given(
    st.tuples(*[st.sampled_from(["f8", "f4", "i4", "u1", "?"])] * 3),
    st.tuples(*[st.sampled_from(["C", "F", "every second", "reversed", "broadcast"])] * 3),
    st.sampled_from([(0, 3, 4), (1, 1, 1), (700, 5, 11), (300, 16, 8)]),
    st.booleans(),
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_dtypes_memory_orders_and_sizes(dtypes, orders, sizes, exact):
    n, k, d = sizes

    def f(x, y, z):
        u = (x[:, None, :] - y * 1.5) + z
        v = u.max(axis=2)
        return np.where(u > 0, u * v[:, :, None], u).sum(axis=0), v, (u + v.sum()).sum(axis=1)

    args = []
    for shape, dtype, order in zip([(n, d), (k, d), (k, d)], dtypes, orders, strict=True):
        x = (RNG.normal(size=shape) * 9).astype("i4").astype(dtype)
        args.append(laid_out(x, order))
    program = lt.trace(f, *args)
    try:
        expected = lt.run_forward(program, *args)
    except ValueError:  # the maximum of nothing
        return
    found = lt.compile(program, exact=exact, kernels="on")(*args)

    if exact:
        assert_same(expected, found)
    else:
        assert_close(expected, found, rtol=1e-3 if "f4" in dtypes else 1e-10, atol=1e-3)


def laid_out(x: np.ndarray, order: str) -> np.ndarray:
    """An array of this shape and dtype in a memory layout."""
    if order == "every second":
        return np.repeat(x, 2, axis=1)[:, ::2]
    if order == "broadcast":
        return np.broadcast_to(x[:1], x.shape) if len(x) else x
    return {"C": x, "F": np.asfortranarray(x), "reversed": x[::-1].copy()[::-1]}[order]
