"""NumPy calls as people write them, each compared with NumPy in a replay, in jit and in gradients.

What is special is how arguments are given: traced integers among counts, ranges among indices,
options of which NumPy's users rarely think.
"""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, assert_same, check_grads
from tests.each_sample import in_one_test

X = np.array([[0.5, -1.25, 2.0, 0.3], [1.5, 0.75, -0.625, -0.2], [1.1, 0.43, -0.7, 2.2]])
V = np.array([0.7, -0.3, 1.9, 0.2, -1.4, 0.6])
LABELS = np.array([2, 0, 3])
ODD = np.array([np.nan, np.inf, -np.inf, 1.0])


class Place:
    """An object that NumPy takes for the integer 2."""

    def __index__(self) -> int:
        return 2


def cross_entropy(scores, labels):
    """The loss of a course on neural networks, with a range among the indices."""
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return -np.log(p[range(len(labels)), labels]).mean()


def gradient_of_scores(scores, labels):
    """Its hand-written gradient."""
    d = np.exp(scores)
    d = d / d.sum(axis=1, keepdims=True)
    d[range(len(labels)), labels] -= 1
    return d / len(labels)


def replaced_in_place(x):
    """A copy in which nan and infinities are replaced, and the array that the call returned."""
    y = x * 1.0
    z = np.nan_to_num(y, copy=False, nan=3.0)
    z[0] = 7.0
    return y


CALLS = {
    "a range": (lambda x, n: x[range(n)], (V, 3)),
    "an empty range": (lambda x: x[range(0)], (V,)),
    "ranges backwards": (lambda x: x[range(2, -1, -1), range(3)], (X,)),
    "a range and labels": (cross_entropy, (X, LABELS)),
    "a range and labels, written": (gradient_of_scores, (X, LABELS)),
    "a list of traced integers": (lambda x, i, j: x[[i, j], [0, i]], (X, 1, 2)),
    "nested lists": (lambda x: (x[[[0, 1], [2, 0]]], x[((0, 1), (2, 0)),]), (X,)),
    "an object with __index__": (lambda x: (x[Place()], x[Place() :]), (V,)),
    "a memoryview": (lambda x: x[memoryview(LABELS)], (V,)),
    "take of a list": (lambda x, k: np.take(x, [k, 1]), (V, 2)),
    "swapaxes of traced axes": (lambda x, k: np.swapaxes(x, 0, k - 1), (X, 2)),
    "tri of a traced size": (lambda x, k: np.tri(3, k + 1) * x, (X, 3)),
    "indices of a traced shape": (lambda x, k: np.indices((k, k)).sum() * x, (X, 2)),
    "triu_indices of a traced size": (lambda x, k: x[np.triu_indices(k, 1)], (X, 3)),
    "pad by a traced width": (np.pad, (X, 2)),
    "pad by traced pairs": (lambda x, p: np.pad(x, ((p, 1), (0, p)), "edge"), (X, 2)),
    "pad by one pair": (lambda x, p: np.pad(x, (p, 1), mode="reflect"), (V, 2)),
    "pad by a dict": (lambda x, p: np.pad(x, {-1: (p, 0), 0: p}), (X, 2)),
    "pad with a traced value": (lambda x, c: np.pad(x, 1, constant_values=c), (X, 0.4)),
    "pad with elements": (lambda x: np.pad(x, 2, constant_values=(x[0], x[-1])), (V,)),
    "linspace with its step": (lambda a, b: np.linspace(a, b, 5, retstep=True), (1.0, 2.5)),
    "linspace without end": (
        lambda a: np.linspace(0, a, 4, endpoint=False, retstep=True),
        (np.float64(2.0),),
    ),
    "linspace of arrays": (lambda v: np.linspace(v, 1, 3, retstep=True, axis=-1), (V,)),
    "nan_to_num in place": (replaced_in_place, (ODD,)),
    "nan_to_num in place, of a result": (lambda x: np.nan_to_num(x * 1.0, copy=False), (ODD,)),
    "nan_to_num by a traced number": (
        lambda x, c: np.nan_to_num(x, nan=c, posinf=2 * c, neginf=-c),
        (ODD, 0.5),
    ),
    "nan_to_num by an array": (lambda x: np.nan_to_num(x, nan=np.arange(4.0)), (ODD,)),
}


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_recorded_without_changes(name):
    f, args = CALLS[name]
    others = [a * 1.25 if np.asarray(a).dtype.kind == "f" else a for a in args]

    program, compiled = lt.trace(f, *args), lt.jit(f)

    assert_same(f(*others), program(*others))
    assert_same(f(*args), compiled(*args))
    assert_same(f(*others), compiled(*others))


@in_one_test
@pytest.mark.parametrize("name", [name for name in CALLS if not name.startswith("nan_to_num")])
def test_a_call_is_differentiated_without_changes(name):
    f, args = CALLS[name]

    check_grads(lt.trace(f, *args), args)


def test_replacements_of_nan_get_their_derivative():
    def f(c, x):
        return np.nan_to_num(x, nan=c, posinf=2 * c, neginf=5.0).sum()

    assert lt.grad(f)(0.5, ODD) == 1.0 + 2.0


def test_a_ramp_may_end_in_a_traced_value():
    def f(x):
        return np.pad(x, (2, 3), "linear_ramp", end_values=x[0, 0])

    program = lt.trace(f, X)

    assert_close(f(X * 2), program(X * 2))
    check_grads(program, (X,))


AXES = [(0, 0), (0, 1, 0), (1, -1)]


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize("axes", AXES)
def test_an_axis_of_a_transform_may_repeat(name, axes):
    f = getattr(np.fft, name)

    program = lt.trace(lambda x: f(x, axes=axes), X)

    assert_close(f(X * 2, axes=axes), program(X * 2))


def test_lengths_of_a_transform_with_a_repeated_axis():
    program = lt.trace(lambda x: np.fft.fftn(x, (3, 5), (0, 0), norm="ortho"), X)

    assert_close(np.fft.fftn(X, (3, 5), (0, 0), norm="ortho"), program(X))


def test_an_object_that_is_not_an_index_is_still_an_index_error():
    for item in ("a", 1.5, {0, 1}, [0.5]):
        with pytest.raises(IndexError, match="an index is made of"):
            lt.trace(lambda x, item=item: x[item], V)


POLYNOMIALS = {
    "polyval": lambda x: np.polynomial.polynomial.polyval(0.5, x),
    "polyval at places": lambda x: np.polynomial.polynomial.polyval(x, [1.0, 2.0, 3.0]),
    "polyvander": lambda x: np.polynomial.polynomial.polyvander(x, 3),
    "polyfit": lambda x: np.polynomial.polynomial.polyfit(np.arange(6.0), x, 2),
    "a polynomial": np.polynomial.Polynomial([1.0, 2.0, 3.0], [0.0, 2.0]),
    "a Chebyshev series": np.polynomial.Chebyshev([1.0, 2.0, 3.0]),
    "poly1d": lambda x: np.poly1d(x)(0.3) + np.poly1d([1, 2])(x),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_a_polynomial_is_recorded(name):
    f = POLYNOMIALS[name]

    assert_close(f(V * 2), lt.trace(f, V)(V * 2))
    check_grads(f, (V,))


# ---- loops over elements ----


def doubled_in_a_loop(x):
    """A copy of which a loop doubles each element."""
    y = x * 1.0
    with np.nditer(y, op_flags=["readwrite"]) as it:
        for element in it:
            element[...] = 2 * element
    return y


def summed_in_a_while_loop(x):
    """A sum as the gradient check of a course on neural networks loops."""
    total = 0.0
    it = np.nditer(x, flags=["multi_index"], op_flags=["readwrite"])
    while not it.finished:
        total = total + x[it.multi_index] * it.multi_index[1]
        it.iternext()
    return total


def added_into_a_new_array(x):
    it = np.nditer([x, x[0] * 2, None])
    for a, b, total in it:
        total[...] = a + b
    return it.operands[2]


LOOPS = {
    "nditer": lambda x: sum(element**2 for element in np.nditer(x)),
    "nditer of two": lambda x: sum(a * b for a, b in np.nditer([x, x[0]])),
    "nditer with indices": summed_in_a_while_loop,
    "nditer that writes": doubled_in_a_loop,
    "nditer with a new array": added_into_a_new_array,
    "broadcast": lambda x: sum(a * b for a, b in np.broadcast(x, x[:1])),
    "the size of a broadcast": lambda x: x * np.broadcast(x, x[:1]).size,
    "vectorize of rows": np.vectorize(lambda a, b: a @ b, signature="(n),(n)->()"),
    "vectorize to rows": np.vectorize(lambda a: a / a.sum(), signature="(n)->(n)"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_over_elements_is_recorded(name):
    f = LOOPS[name]
    args = (X, X[::-1]) if name == "vectorize of rows" else (X,)
    others = [x * 1.5 for x in args]

    program, compiled = lt.trace(f, *args), lt.jit(f)

    assert_close(f(*others), program(*others))
    assert_close(f(*args), compiled(*args))
    check_grads(f, args)


def test_elements_in_another_order_than_c_are_refused():
    with pytest.raises(lt.TraceError, match=r"not in C order.*\n.*\n.*order='C'"):
        lt.trace(lambda x: list(np.nditer(x.T)), X)
    with pytest.raises(ValueError, match="inconsistent size for core dimension 'n'"):
        lt.trace(LOOPS["vectorize of rows"], X, X[:, 1:])


def test_an_index_of_nditer_counts_in_the_order_of_its_flag():
    def places(x, flag):
        it = np.nditer(x, flags=[flag])
        return [it.index for _ in it]

    for flag in ("c_index", "f_index"):
        assert places(X, flag) == lt.trace(places, X, flag)(X, flag)
    with pytest.raises(ValueError, match="does not have an index"):
        lt.trace(lambda x: np.nditer(x).index, X)


@pytest.mark.parametrize(
    "options", [{"flags": ["external_loop"]}, {"flags": ["buffered"], "op_dtypes": ["float64"]}]
)
def test_jit_runs_an_iterator_that_is_not_recorded_as_python(options):
    def total(x):
        return sum([part.sum() for part in np.nditer(x, **options)])

    with pytest.warns(RuntimeWarning, match="as Python"):
        assert_same(total(X), lt.jit(total)(X))
