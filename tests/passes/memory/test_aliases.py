"""Views as records declare them, and copy_outliving_views, which copies views that outlive their
arrays.
"""

import numpy as np
from hypothesis import given

import letir as lt
import letir.numpy as lnp
from letir.ast.primitive import PRIMITIVES
from letir.eval.array_modules import type_of
from letir.eval.evaluator import compute
from letir.passes import copy_outliving_views
from letir.testing import SAMPLES, assert_same, programs
from tests.each_sample import each_of


def ops(fn) -> list[str]:
    return [bind.op.name for bind in fn.binds]


def rows(x):
    y = x * 2
    first = y[0] + 0.0
    z = y.at[0].set(1.0)
    return first, z, x


def test_a_view_whose_last_use_is_before_the_update_stays_a_view():
    fn = lt.trace(rows, np.ones((4, 2)))

    assert fn is copy_outliving_views(fn)


def test_a_view_that_outlives_the_update_is_copied():
    def program(x):
        y = x * 2
        return y[0], y.T[:1], y.at[1].set(1.0)

    fn = lt.trace(program, np.ones((4, 2)))
    apart = lt.check(copy_outliving_views(fn))

    assert 2 == ops(apart).count("copy")
    assert_same(fn(np.ones((4, 2))), apart(np.ones((4, 2))))


def test_views_of_arguments_and_views_of_most_of_an_array_stay_views():
    """An argument is copied before the update anyway, and so would be most of the array."""

    def program(x):
        y = x * 2
        return x[0], y[1:], x.at[1].set(1.0), y.at[1].set(1.0)

    fn = lt.trace(program, np.ones((4, 2)))

    assert fn is copy_outliving_views(fn)


def test_a_gradient_keeps_rows_of_a_buffer_and_no_buffers():
    def filled(v):
        buffer = lnp.zeros((10, 4))
        for i in range(1, 10):
            buffer[i] = np.sin(buffer[i - 1]) + v[i]
        return buffer.sum()

    gradient = lt.differentiate(lt.trace(filled, np.ones((10, 4))))

    assert "copy" in ops(gradient.f)


@given(programs())
def test_results_that_are_views_stay_as_they_are(program):
    fn, args = program

    with np.errstate(all="ignore"):
        assert_same(
            lt.run_forward(fn, *args), lt.run_forward(lt.check(copy_outliving_views(fn)), *args)
        )


# ---- views declared by records ----


def results_of(op, args: list, attrs) -> tuple:
    """The results of an operation as a tuple."""
    with np.errstate(all="ignore"):
        out = compute(op, list(args), attrs)
    return (out,) if op.results is None else tuple(out)


def is_said_to_be_view(op, args: list, attrs) -> bool:
    """Whether the record declares the results views of the first operand, given in C order.

    A reshape in another order is a view of other arrays.
    """
    if attrs.get("order", "C") != "C":
        return False
    types = [type_of(arg) if isinstance(arg, np.ndarray) else None for arg in args]
    return op.memory == "view" if op.views is None else op.views(*types, **attrs)


@each_of([n for n in sorted(SAMPLES) if PRIMITIVES[n].views or PRIMITIVES[n].memory == "view"])
def test_results_share_memory_where_the_record_says_that_they_are_views(name):
    op = PRIMITIVES[name]
    for sample in SAMPLES[name]:
        args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in sample.args]
        attrs = op.complete(sample.attrs)
        if not isinstance(args[0], np.ndarray) or (op.role == "index" and len(args) > 1):
            continue  # by an integer among the operands x[i] is a view, by an array a copy
        expected = is_said_to_be_view(op, args, attrs)
        for result in results_of(op, args, attrs):
            if isinstance(result, np.ndarray) and result.size:
                assert expected == np.shares_memory(result, args[0])


@each_of([name for name in sorted(SAMPLES) if PRIMITIVES[name].memory == "if_same_shape"])
def test_a_reduction_returns_new_memory(name):
    op, seen = PRIMITIVES[name], set()
    for sample in SAMPLES[name]:
        args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in sample.args]
        for result in results_of(op, args, op.complete(sample.attrs)):
            if isinstance(args[0], np.ndarray) and isinstance(result, np.ndarray):
                is_same = result.shape == args[0].shape
                seen.add(is_same)
                assert is_same or not np.may_share_memory(result, args[0])

    assert {True, False} == seen
