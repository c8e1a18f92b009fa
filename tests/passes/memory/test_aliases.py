"""copy_outliving_views: a view that outlives its array is copied, so that the array need not be."""

import numpy as np
from hypothesis import given

import letir as lt
import letir.numpy as lnp
from letir.passes import copy_outliving_views
from letir.testing import assert_same, programs


def ops(fn) -> list[str]:
    return [bind.op.name for bind in fn.binds]


def rows(x):
    y = x * 2
    first = y[0] + 0.0
    z = y.at[0].set(1.0)
    return first, z, x


def test_a_part_that_ends_before_the_update_is_a_view():
    fn = lt.trace(rows, np.ones((4, 2)))

    assert fn is copy_outliving_views(fn)


def test_a_part_that_outlives_the_update_is_copied():
    def program(x):
        y = x * 2
        return y[0], y.T[:1], y.at[1].set(1.0)

    fn = lt.trace(program, np.ones((4, 2)))
    apart = lt.check(copy_outliving_views(fn))

    assert 2 == ops(apart).count("copy")
    assert_same(fn(np.ones((4, 2))), apart(np.ones((4, 2))))


def test_parts_of_arguments_and_large_parts_stay_views():
    """An argument is copied in any case, and so would most of the array be."""

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
def test_results_stay_what_they_are(program):
    fn, args = program

    with np.errstate(all="ignore"):
        assert_same(
            lt.run_forward(fn, *args), lt.run_forward(lt.check(copy_outliving_views(fn)), *args)
        )
