"""A function that writes into an argument is differentiated for arrays that share no memory: a call
in which they do is an error, never the derivative for separate arrays."""

import numpy as np
import pytest

import letir as lt
from letir.ast.text.parser import parse
from letir.errors import TraceError
from letir.testing import assert_same

A, B, X = np.arange(3.0) + 1, np.arange(3.0) + 4, np.full(3, 2.0)


def dot_after_write(a, b, x):
    a += x
    return (a * b).sum()


def program():
    return lt.trace(dot_after_write, A, B, X)


def program_in_file(folder):
    lt.save(lt.grad(program()), folder / "program.letir")
    return lt.load(folder / "program.letir")


def run_source(folder):
    space: dict = {}
    exec(lt.to_source(lt.grad(program()), name="by_source"), space)
    return space["by_source"]


GRADIENTS = {
    "jit": lambda folder: lt.jit(lt.grad(dot_after_write)),
    "jit of a function that calls it": lambda folder: lt.jit(
        lambda a, b, x: lt.grad(dot_after_write)(a, b, x) * 1.0
    ),
    "jit of views": lambda folder: lt.jit(
        lambda a, b, x: lt.grad(dot_after_write)(a[:], b[:], x[:])
    ),
    "second derivative": lambda folder: lt.jit(
        lambda a, b, x: lt.grad(lambda b: lt.grad(dot_after_write)(a, b, x).sum() + (b * b).sum())(
            b
        )
    ),
    "trace": lambda folder: lt.trace(lt.grad(dot_after_write), A, B, X),
    "grad of a program": lambda folder: lt.grad(program()),
    "program that calls a program": lambda folder: lt.trace(
        lambda a, b, x: lt.grad(program())(a, b, x) * 1.0, A, B, X
    ),
    "plan": lambda folder: lt.compile(lt.grad(program())),
    "text": lambda folder: parse(lt.dumps(lt.grad(program()))),
    "file": program_in_file,
    "jit of a program": lambda folder: lt.jit(lt.grad(program())),
    "jacobian": lambda folder: lt.jacobian(program()),
    "vjp": lambda folder: lambda *args: lt.vjp(program(), *args)[1](1.0)[0],
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_derivative_refuses_arrays_that_share_memory_with_one_that_is_written(name, tmp_path):
    gradient, row = GRADIENTS[name](tmp_path), np.arange(6.0)
    separate = gradient(A, B, X)
    assert separate.shape == (3,)

    for _ in range(12):  # by all the ways of frequent calls
        assert_same(separate, gradient(A.copy(), B.copy(), X))
        with pytest.raises(TraceError, match="a, which the program changes, shares memory with b"):
            gradient(A, A, X)
    with pytest.raises(TraceError, match=r"shares memory with b\n(.*\n)?.*pass a copy"):
        gradient(row[:3], row[2:5], X)
    with pytest.raises(TraceError, match="shares memory with x"):
        gradient(A, B, A[::-1])


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_derivative_takes_arrays_side_by_side_in_one_memory(name, tmp_path):
    gradient, row = GRADIENTS[name](tmp_path), np.arange(6.0)

    for a, b in ((row[:3], row[3:]), (row[::2], row[1::2])):
        assert_same(gradient(a.copy(), b.copy(), X), gradient(a, b, X))


def test_the_source_of_a_derivative_refuses_arrays_that_share_memory(tmp_path):
    gradient = run_source(tmp_path)

    assert_same(B, gradient(A, B, X))
    with pytest.raises(ValueError, match="a, which was changed, shares memory with b"):
        gradient(A, A, X)


def test_a_batch_of_programs_refuses_arrays_that_share_memory():
    gradient, rows = lt.vmap(lt.grad(program())), np.arange(12.0).reshape(4, 3)

    assert_same(rows + 1, gradient(rows, rows + 1, np.ones((4, 3))))
    with pytest.raises(TraceError, match="shares memory with b"):
        gradient(rows, rows, np.ones((4, 3)))


def test_two_views_of_one_argument_are_refused_where_they_overlap():
    def of_parts(row, k):
        return lt.grad(dot_after_write)(row[:3], row[k : k + 3], X)

    apart, row = lt.jit(of_parts, static_argnums=1), np.arange(7.0)

    assert_same(row[3:6], apart(row, 3))
    with pytest.raises(TraceError, match="shares memory with b"):
        apart(row, 2)


def test_values_that_a_function_makes_are_not_tested():
    fn = lt.trace(lambda a, x: lt.grad(dot_after_write)(a * 2, a, x), A, X)

    assert "guard_separate" not in lt.dumps(fn)
    assert_same(A, fn(A, A))


def test_programs_without_writes_have_no_test():
    fn = lt.grad(lt.trace(lambda a, b: (a * b).sum(), A, B))

    assert "guard_separate" not in lt.dumps(fn)
    assert_same(A, fn(A, A))


def test_a_body_of_a_loop_takes_one_array_for_two_carried_values():
    def step(i, carry):
        a, b = carry
        return a - 0.1 * lt.grad(dot_after_write)(a, b, X), b

    looped = lt.trace(lambda a: lt.fori_loop(0, 2, step, (a, a))[0], A)

    assert_same(A - 0.1 * A - 0.1 * A, looped(A))


TABLE = np.ones(3)


def changed_table(a):
    a += 1
    return (a * TABLE).sum()


def test_an_argument_that_is_an_array_from_outside_too_is_no_constant_of_the_program():
    found = lt.jit(changed_table)

    with pytest.warns(RuntimeWarning, match="shares memory with an array that it reads from out"):
        assert_same(np.float64(12.0), found(TABLE))
    with pytest.raises(TraceError, match="a, which the program changes, shares memory with an arr"):
        lt.trace(changed_table, TABLE)
    with pytest.raises(TraceError, match="a, which the program changes, shares memory with an arr"):
        lt.grad(changed_table)(TABLE)


def adds(a, b):
    a += b
    return (a * b).sum()


def shifts(a, b):
    a[1:] = b[:-1]
    b *= 2
    return (a * a).sum() + b.max()


def computes_into(a, b):
    np.multiply(a, b, out=a)
    return a.sum() * b.sum()


def writes_through_a_view(a, b):
    backwards = a[::-1]
    backwards[0] = b.sum()
    return (a * b).sum()


def writes_both(a, b):
    a[:] = b
    b[:] = a + 1
    return (a - b).sum() + a[0] * b[0]


def writes_nothing(a, b):
    return (a * b).sum()


LAYOUTS = {  # how two arguments of four numbers lie in memory
    "apart": lambda memory: (memory[:4].copy(), memory[4:8].copy()),
    "one array": lambda memory: (memory[:4],) * 2,
    "one view": lambda memory: (memory[:4], memory[:4][:]),
    "backwards": lambda memory: (memory[:4], memory[3::-1]),
    "shifted": lambda memory: (memory[:4], memory[1:5]),
    "interleaved": lambda memory: (memory[0:8:2], memory[1:9:2]),
    "adjacent": lambda memory: (memory[:4], memory[4:8]),
}


def outcome(f, layout):
    """(result, arguments after the call), or the name of the error."""
    args = LAYOUTS[layout](np.arange(12.0) * 0.7 % 3 + 0.3)
    try:
        result = f(*args)
    except TraceError as error:
        return type(error).__name__
    return np.array(result), *[arg.copy() for arg in args]


@pytest.mark.parametrize(
    "f", [adds, shifts, computes_into, writes_through_a_view, writes_both, writes_nothing]
)
def test_all_ways_agree_on_arguments_that_share_memory(f):
    jitted, slope = lt.jit(f), lt.grad(f)
    apart = LAYOUTS["apart"](np.arange(12.0))
    slopes = (lt.jit(slope), lt.grad(lt.trace(f, *apart)), lt.compile(lt.grad(lt.trace(f, *apart))))

    for layout in [*LAYOUTS] * 3:
        assert_same(outcome(f, layout), outcome(jitted, layout))
        for other in slopes:
            assert_same(outcome(slope, layout), outcome(other, layout))
