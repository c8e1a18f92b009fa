"""Exceptions of NumPy that the recorded function catches decide on its path [B2]."""

import contextlib
import warnings

import numpy as np
import pytest

import letir as lt
from letir.errors import GuardError, TraceError
from letir.testing import assert_same

ROW = np.arange(3.0)
GOOD, BAD, SINGULAR = 4 * np.eye(2), -np.eye(2), np.zeros((2, 2))


def element(row, i):
    try:
        return row[i]  # here
    except IndexError:
        return -1.0


def factor(a):
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return np.linalg.cholesky(a + 10 * np.eye(2))


def restarted(a, b):
    out = 0.0
    for matrix in (a, b, a):
        try:
            out = out + np.linalg.inv(matrix).sum()
        except np.linalg.LinAlgError:
            out = out - 1.0
        else:
            out = 2 * out
        finally:
            out = out + 0.5
    return out


def suppressed(row, i):
    found = -1.0
    with contextlib.suppress(IndexError):
        found = row[i]
    return found


def remainder(k):
    try:
        return 7 % k
    except ZeroDivisionError:
        return -1


def logarithm(x):
    with np.errstate(divide="raise"):
        try:
            return np.log(x).sum()
        except FloatingPointError:
            return x.sum()


def whole(x, y):
    try:
        return y * int(x)
    except (ValueError, OverflowError):
        return -y


def probed(a):
    try:
        np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return -a
    return a


CASES = {
    "an index": (element, [(ROW, 1), (ROW, 7)]),
    "a factor": (factor, [(GOOD,), (BAD,)]),
    "several": (restarted, [(GOOD, SINGULAR), (SINGULAR, GOOD)]),
    "with": (suppressed, [(ROW, 2), (ROW, 9)]),
    "a Python number": (remainder, [(3,), (0,)]),
    "errstate": (logarithm, [(ROW + 1,), (ROW,)]),
    "int of nan": (whole, [(np.float64(2.0), 3.0), (np.float64("nan"), 3.0)]),
    "an unused value": (probed, [(GOOD,), (SINGULAR,)]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_replay_that_raises_otherwise_is_a_guard_error(case):
    f, (first, second) = CASES[case]
    for args, others in ((first, second), (second, first)):
        program = lt.trace(f, *args)

        assert_same(f(*args), program(*args))
        with pytest.raises(GuardError, match="the program was recorded where this"):
            program(*others)
        with pytest.raises(GuardError):
            lt.compile(program)(*others)


@pytest.mark.parametrize("case", CASES)
def test_jit_takes_the_path_of_the_function(case):
    f, calls = CASES[case]
    for order in (calls, calls[::-1]):
        jitted = lt.jit(f)
        for args in [*order, *order]:
            assert_same(f(*args), jitted(*args))


@pytest.mark.parametrize("a", [GOOD, BAD])
def test_derivatives_follow_the_path(a):
    direction = np.array([[1.0, 0.5], [0.5, 2.0]])
    path = np.linalg.cholesky if a is GOOD else lambda x: np.linalg.cholesky(x + 10 * np.eye(2))

    def total(function):
        return lambda x: (function(x) * direction).sum()

    expected = lt.grad(total(path))(a)
    assert_same(expected, lt.grad(total(factor))(a))
    assert_same(expected, lt.jit(lt.grad(total(factor)))(a))
    assert_same(expected, lt.grad(lt.trace(total(factor), a))(a))
    assert_same(expected, lt.grad(total(lt.checkpoint(factor)))(a))
    assert_same(lt.hessian(total(path))(a), lt.hessian(total(factor))(a))
    assert_same(lt.jvp(path, (a,), (direction,)), lt.jvp(factor, (a,), (direction,)))


def test_an_operation_in_a_try_that_did_not_raise_is_computed_in_replays():
    assert """\
%2 = index %0, %1, @
guard_computed %2, True
return %2
""" == lt.trace(element, ROW, 1).listing()


def test_an_operation_that_raised_is_a_guard_that_survives_a_file():
    program = lt.trace(element, ROW, 7)
    again = lt.parse(lt.dumps(program))

    assert ["guard_raised"] == [bind.op.name for bind in again.binds]
    assert again == program
    with pytest.raises(GuardError):
        again(ROW, 1)


def test_the_error_names_both_and_the_line(told_by):
    program = lt.trace(element, ROW, 1)

    kind, text = told_by(lambda: program(ROW, 7), element)

    assert kind is GuardError
    assert text.startswith(
        "the program was recorded where this raised nothing, now it raises IndexError: index 7 is "
        "out of bounds for axis 0 with size 3\n  at test_caught_exceptions.py:NN: row[i]\n"
    )


def test_outside_of_try_a_replay_raises_numpys_error():
    program = lt.trace(lambda row, i: row[i], ROW, 1)

    assert ["index"] == [bind.op.name for bind in program.binds]
    with pytest.raises(IndexError):
        program(ROW, 7)


def test_a_block_of_errstate_catches_nothing():
    def alone(x):
        with np.errstate(invalid="ignore"), np.errstate(over="raise"):
            return np.exp(x)

    def in_try(x):
        try:
            with np.errstate(over="raise"):
                return np.exp(x)
        except FloatingPointError:
            return x

    def beside(x):
        with contextlib.suppress(FloatingPointError), np.errstate(over="raise"):
            x = np.exp(x)
        return x

    large = np.full(3, 1e4)
    with pytest.raises(FloatingPointError, match="overflow"):
        lt.trace(alone, ROW)(large)
    assert ["errstate"] == [bind.op.name for bind in lt.trace(alone, ROW).binds]
    for f in (in_try, beside):
        with pytest.raises(GuardError):
            lt.trace(f, ROW)(large)
        jitted = lt.jit(f)
        for x in (ROW, large, ROW):
            assert_same(f(x), jitted(x))


def test_a_value_that_raises_before_the_try_is_not_caught_in_it():
    """A lazy trace computes it where Python asks for it, which is too late."""

    def late(a):
        inverse = np.linalg.inv(a)
        try:
            if inverse.sum() > 0:
                return inverse
        except np.linalg.LinAlgError:
            return a
        return -inverse

    assert_same(late(GOOD), lt.jit(late)(GOOD))
    for transformed in (lt.jit(late), lt.jacobian(late)):
        with pytest.raises(np.linalg.LinAlgError):
            transformed(SINGULAR)


def test_bodies_guard_what_their_try_may_catch():
    def total(rows, i):
        def step(carry, row):
            try:
                return carry + row[i], carry
            except IndexError:
                return carry - 1.0, carry

        return lt.scan(step, 0.0, rows)

    rows = np.arange(6.0).reshape(2, 3)
    program = lt.trace(total, rows, 1)

    assert_same(total(rows, 2), program(rows, 2))
    with pytest.raises(GuardError):
        program(rows, 7)
    assert_same(total(rows, 7), lt.jit(total)(rows, 7))


def test_an_exception_of_an_inner_trace_that_the_outer_function_catches():
    def slope(a):
        try:
            return lt.grad(lambda b: np.linalg.cholesky(b).sum())(a)
        except np.linalg.LinAlgError:
            return a

    jitted = lt.jit(slope)

    for a in (GOOD, BAD, GOOD):
        assert_same(slope(a), jitted(a))
    with pytest.raises(GuardError):
        lt.trace(slope, GOOD)(BAD)
    with pytest.raises(GuardError):
        lt.trace(slope, BAD)(GOOD)


def test_vmap_refuses_an_exception_of_single_examples():
    both = np.stack([GOOD, BAD])

    assert_same(np.stack([2 * np.eye(2)] * 2), lt.vmap(factor)(np.stack([GOOD, GOOD])))
    with pytest.raises(GuardError):
        lt.vmap(factor)(both)
    with pytest.raises(TraceError, match="vmap: the program chose its path"):
        lt.vmap(lt.trace(factor, BAD))(both)


def test_sizes_that_decide_on_an_exception_have_a_plan_each():
    def product(x, y):
        try:
            return (x + y).sum()
        except ValueError:
            return x.sum()

    jitted = lt.jit(product)
    for n, m in ((3, 4), (5, 6), (5, 5), (7, 7), (1, 7)):
        assert_same(product(np.ones(n), np.ones(m)), jitted(np.ones(n), np.ones(m)))
    with pytest.raises(TraceError, match="the function caught an error of its recording"):
        lt.trace(product, lt.ShapeDtype(("n",)), lt.ShapeDtype(("m",)))


def test_check_does_not_take_another_path_for_a_baked_number():
    for args in ((ROW, 1), (ROW, 2), (ROW, 7)):
        assert_same(element(*args), lt.trace(element, *args, check=True)(*args))


def test_the_source_of_a_program_raises_where_it_does_not_hold():
    names: dict = {}
    exec(lt.to_source(lt.trace(factor, BAD)), names)

    assert_same(factor(BAD), names["f"](BAD))
    with pytest.raises(ValueError, match="recorded where it raised"):
        names["f"](GOOD)


def test_what_raises_first_is_raised_and_writes_before_it_are_kept():
    def both(row, i, s):
        row[0] = 5.0
        out = row[i]  # a lazy trace does not compute it
        return out * int(s)

    jitted = lt.jit(both)
    for i, error in ((9, IndexError), (1, ValueError)):
        row = np.arange(3.0)
        with pytest.raises(error):
            jitted(row, i, np.float64("nan"))
        assert_same(np.array([5.0, 1.0, 2.0]), row)


def described(row, i):
    try:
        return row[i], ""
    except IndexError as error:
        return row[0], str(error)


def by_exception(row, i):
    try:
        with np.errstate(all="raise"):
            return np.log(row[i]), ""
    except FloatingPointError as error:
        return 0 * row[i], f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("f", [described, by_exception])
def test_the_text_of_an_exception_that_the_function_keeps_is_guarded(f):
    row = np.array([0.0, -1.0, 2.0])
    jitted = lt.jit(f)
    for i in (0, 1, 2, 5, 7, 0) if f is described else (0, 1, 2, 0):
        assert_same(f(row, i), jitted(row, i))
    first, second = (5, 7) if f is described else (0, 1)
    program = lt.trace(f, row, first)

    assert_same(f(row, first), program(row, first))
    with pytest.raises(lt.GuardError, match=r"recorded where this raised .*, now it raises"):
        program(row, second)


def test_an_index_error_is_not_a_value_error():
    def f(x):
        try:
            return x[7]
        except ValueError:
            return -1.0
        except IndexError:
            return x[0]

    assert_same(f(ROW), lt.trace(f, ROW)(ROW))


def of_class(x):
    try:
        return x[7]
    except (IndexError, ValueError) as error:
        return {IndexError: 1.0, ValueError: 2.0}[type(error)] * x


def with_text(x):
    try:
        return x @ np.ones(7), ""
    except ValueError as error:
        return x, str(error)


def with_formatted_text(x):
    try:
        return x + np.ones(7), ""
    except ValueError as error:
        return x, f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("f", [of_class, with_text, with_formatted_text])
def test_jit_gives_the_class_and_the_text_of_numpys_error(f):
    fast = lt.jit(f)

    assert_same(f(ROW), fast(ROW))
    assert_same(f(ROW + 1), fast(ROW + 1))


def test_arithmetic_of_python_floats_that_cannot_raise_has_no_guard():
    def root(x):
        try:
            for _ in range(3):
                x = x - (x * x - 2.0) / (2.0 * x)
        except ZeroDivisionError:
            return -1.0
        return x

    program = lt.trace(root, 1.0)

    guarded = [bind for bind in program.binds if bind.op.name == "guard_computed"]
    assert len(guarded) == 3  # the divisions
    assert root(3.0) == program(3.0)
    with pytest.raises(lt.GuardError):
        program(0.0)


def doubled_or_zero(n):
    try:
        return n * n + (n << 3)
    except OverflowError:
        return 0


@pytest.mark.parametrize("handled", [OverflowError, Exception])
@pytest.mark.parametrize("x", [5, 2**62, -(2**62)])
def test_integers_beyond_64_bits_raise_nothing_that_the_function_can_catch(handled, x):
    """The error that the recording of such a number raises is letir's own."""

    def squared(n):
        try:
            return n * n + (n << 3)
        except handled:
            return 0

    fast = lt.jit(squared)
    assert squared(3) == fast(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that jit calls the function as Python
        assert [squared(x), squared(3)] == [fast(x), fast(3)]
        assert squared(x) == lt.jit(squared)(x)


def test_a_program_is_not_recorded_from_a_caught_refusal_of_an_integer():
    with pytest.raises(TraceError, match="64 bits"):
        lt.trace(doubled_or_zero, 2**62)
    with pytest.raises(GuardError, match="64 bits"):
        lt.trace(doubled_or_zero, 3)(2**62)
