"""Writes of traced values into arrays that operators and C code make of outside arrays [B6]."""

import functools
import threading

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from letir.tracing.mutation import operator_results
from letir.tracing.mutation.buffers import Buffer
from tests.each_sample import in_one_test
from tests.tracing.mutation.test_copying_methods import assert_recorded

T, M = np.arange(6.0) + 1, np.arange(12.0).reshape(3, 4)


class Holder:
    pass


def by_a_view(s):
    v = T * 2
    part = v[::2]
    part[:] = s
    return v


def by_the_diagonal(s):
    v = M * 2
    np.fill_diagonal(v.reshape(3, 4), s)
    return v


def by_containers(s):
    v = T - 1
    kept, named, holder = [v], {"v": v}, Holder()
    holder.v = v
    v[0] = s
    named["v"][1] = 2 * s
    holder.v += s
    return kept[0] + named["v"], v


def by_a_closure(s):
    v = 2 / T

    def put(i, a=v):
        v[i] = s
        a[0] += s

    put(1)
    return v


def by_out(s):
    v, w, m = T**2, T // 2, M @ M.T
    np.add(v, s, out=v)
    np.clip(w, 0.0, s, out=w)
    np.multiply(T, s, out=v[:])
    np.copyto(w, s, where=T > 3)
    np.fill_diagonal(m, s)
    np.add.at(v, [0, 0], s)
    return v, w, m


def by_rows(s):
    m = M + 1
    for i, row in enumerate(m):
        row[:] = s * i
    return m


def of_selections(s):
    a, b, c = T[[0, 2, 1]], T[T > 2], M[:, [0, 2]]
    for each in (a, b, c):
        part = each[1:]
        part[0] = s
    return a, b, c


def of_one_operand(s):
    for each in (a := -T, b := abs(T), c := np.sin(T), d := sum([T, T])):
        part = each[1:]
        part[0] = s
    return a, b, c, d


def of_methods(s):
    a, b, c = M.cumsum(0), M.T.ravel(), M.dot(M.T)
    for each in (a, b, c):
        part = each[1:]
        part[0] = s
    return a, b, c


def of_comparisons(s):
    mask = T > 2
    kept = [mask]
    mask[0] = s > 2
    return kept[0], mask


def of_several_results(s):
    q, r = np.divmod(T, 4)
    part = q[1:]
    part[0] = s
    r[:] = part[0]
    return q, r


def of_lists(s):
    v = T * 2
    v[:2] = [s, 1.0]
    return v


FUNCTIONS = [
    *(
        by_a_view,
        by_the_diagonal,
        by_containers,
        by_a_closure,
        by_out,
        by_rows,
        of_selections,
        of_one_operand,
    ),
    *(of_methods, of_comparisons, of_several_results, of_lists),
]


@in_one_test
@pytest.mark.parametrize("f", FUNCTIONS)
def test_results_of_operators_are_written_into(f):
    assert_recorded(f)
    assert T.tolist() == [1, 2, 3, 4, 5, 6]
    assert M.tolist() == np.arange(12.0).reshape(3, 4).tolist()


def test_gradients_flow_through_writes_into_results_of_operators():
    assert_same(np.float64(3.0), lt.grad(lambda s: by_a_view(s).sum())(2.0))
    assert_same(np.float64(12.0), lt.grad(lambda s: (by_a_view(s) ** 2).sum())(2.0))
    nested = lt.trace(lt.grad(lambda x: by_a_view(x).sum() * x), 2.0)
    assert_same(by_a_view(3.0).sum() + 9.0, nested(3.0))


def write_into_the_table(s):
    part = T[1:]
    part[:] = s


def write_into_the_reshaped_table(s):
    np.reshape(T, (2, 3))[:] = s


def write_into_a_result_with_out(s):
    np.abs(T, out=T)[:] = s


def write_into_both(s):
    v = T * 2
    kept = [v]
    v[0] = T[0] = s
    return kept


@in_one_test
@pytest.mark.parametrize(
    "f",
    [
        *(write_into_the_table, write_into_the_reshaped_table, write_into_a_result_with_out),
        write_into_both,
    ],
)
def test_writes_into_outside_arrays_stay_refused(f):
    with pytest.raises(lt.TraceError, match="ordinary array"):
        lt.trace(f, 3.5)

    assert T.tolist() == [1, 2, 3, 4, 5, 6]


def test_a_function_that_keeps_a_result_outside_is_refused():
    kept = {}

    def f(s):
        kept["table"] = T * 2
        return by_a_view(s)

    with pytest.raises(lt.TraceError, match="ordinary array"):
        lt.trace(f, 3.5)

    assert_same(T * 2, kept["table"])
    assert_same(by_a_view(2.0), lt.jit(f)(2.0))


def test_numpys_operators_are_restored_after_the_recording():
    own = {name: np.ndarray.__dict__[name] for name in ("__mul__", "__getitem__", "__eq__")}
    seen = []

    def f(s):
        seen.append(T * 2)
        by_a_view(s)
        raise KeyError(0)

    with pytest.raises(KeyError):
        lt.trace(f, 3.5)

    assert [np.ndarray, Buffer] == list(map(type, seen))
    assert type(T * 2) is type(T[[0]]) is type(np.sin(T)) is np.ndarray
    assert [slot.value for slot, _, _ in operator_results.array_slots()] == [
        old for _, old, _ in operator_results.array_slots()
    ]
    if not operator_results.STAY_IN_PLACE:
        assert own == {name: np.ndarray.__dict__[name] for name in own}


def test_other_threads_and_cached_functions_get_ordinary_arrays():
    @functools.lru_cache
    def table():
        return T * 3

    def f(s):
        kinds = []
        thread = threading.Thread(target=lambda: kinds.append(type(T * 2)))
        thread.start()
        thread.join()
        assert [np.ndarray] == kinds
        return by_a_view(s) + table()

    assert_same(f(3.5), lt.trace(f, 2.5)(3.5))
    assert type(table()) is np.ndarray


def test_subclasses_and_other_operands_keep_their_operators():
    class Named(np.ndarray):
        def __rmul__(self, other):
            return "reflected"

    class Unit:
        __array_ufunc__ = None

        def __rmul__(self, other):
            return "unit"

    def f(s):
        assert T * T.view(Named) == "reflected"
        assert T * Unit() == "unit"
        assert type(np.float64(2) * T) is type(2 * T) is type(T * 2)
        for wrong in (lambda: T * "a", lambda: T @ np.ones(5), lambda: T[7]):
            with pytest.raises((TypeError, ValueError, IndexError)):
                wrong()
        return by_a_view(s)

    assert_same(by_a_view(2.0), lt.trace(f, 3.0)(2.0))


def test_a_write_is_refused_where_operators_cannot_be_replaced(monkeypatch):
    def program(s):
        v = T * 2
        part = v[::2]
        part[:] = s
        return v

    monkeypatch.setattr(operator_results, "_has_known_layout", lambda: False)

    with pytest.raises(lt.TraceError, match="written into an ordinary array"):
        lt.trace(program, 3.5)
    assert_same(program(3.5), lt.jit(program)(3.5))
