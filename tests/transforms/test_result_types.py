"""``eval_shape``: the types of results without their values."""

import numpy as np
import pytest
from hypothesis import given, settings

import letir as lt
from letir.eval.array_modules import type_of
from letir.testing import programs

S = lt.ShapeDtype
X = np.array([0.5, 1.5, -2.0])


@settings(max_examples=50)
@given(programs())
def test_shapes_and_dtypes_are_those_of_the_results(case):
    program, args = case
    found = lt.tree.leaves(lt.eval_shape(program, *args))

    expected = [type_of(leaf) for leaf in lt.tree.leaves(program(*args))]
    assert [(t.dtype, t.shape) for t in expected] == [(t.dtype, t.shape) for t in found]


def test_the_result_nests_as_that_of_the_function():
    def f(x):
        return {"y": x.sum(axis=1), "n": (1, 2.5), "text": "a", "none": None, "flag": True}

    assert lt.eval_shape(f, S(("n", 3), "float32")) == {
        "y": S(("n",), "float32"),
        "n": (S((), "int64", weak=True), S((), "float64", weak=True)),
        "text": "a",
        "none": None,
        "flag": S((), "bool"),
    }


def test_eval_shape_computes_nothing():
    def refuse(x):
        raise AssertionError("computed")

    refused = lt.opaque(refuse, lambda x: x, name="tests.refused")
    large = S((10**6, 10**6), "float32")

    assert lt.eval_shape(refused, X) == S(3)
    assert lt.eval_shape(lambda x: np.exp(x @ x.T)[0], large) == S(10**6, "float32")


def test_arguments_keep_their_values():
    x, rng = np.ones(3), np.random.default_rng(0)

    def f(x, rng, scale):
        x[0] = 5.0
        return x * scale + rng.normal(size=3)

    assert lt.eval_shape(f, x, rng, scale=2.0) == S(3)
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert rng.normal() == np.random.default_rng(0).normal()


# a recording here would search the files of all tests collected so far
PROGRAM = lt.parse(
    "lambda %0: float64[3] { %1: float64[3] = power(%0, 2); %2: float64[] = sum(%1); return %2 }"
)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lt.grad(lambda x: (x**2).sum()), S(3)),
        (lt.jit(lambda x: (x**2).sum()), S(())),
        (PROGRAM, S(())),
        (lt.grad(PROGRAM), S(3)),
        (lt.compile(PROGRAM), S(())),
        (lt.vmap(lambda x: (x, x > 0)), (S(3), S(3, "bool"))),
        (lambda x: lt.scan(lambda c, x: (c + x, c), 0.0, x), (S(()), S(3))),
        (lambda x: x * len(lt.eval_shape(np.outer, x, x).shape), S(3)),
    ],
)
def test_transforms_and_programs_have_result_types(f, expected):
    assert expected == lt.eval_shape(f, X)


def test_inside_a_recorded_function_only_types_of_traced_values_are_read():
    program = lt.trace(lambda x: np.ones(lt.eval_shape(np.outer, x, x).shape) * 2, X)

    assert program(X).shape == (3, 3)


UNKNOWN = lt.primitive("tests.of_unknown_type", lambda xp, x: x, lambda x: None)
WRONG = {
    "decision": (lambda: lt.eval_shape(lambda x: x if x > 0 else -x, 1.0), "truth value"),
    "nonzero": (lambda: lt.eval_shape(np.nonzero, X), "numpy.nonzero"),
    "shapes": (lambda: lt.eval_shape(np.matmul, S((3, 4)), S((3, 4))), "inner sizes differ"),
    "object": (lambda: lt.eval_shape(lambda x: object(), X), "returned an object of type object"),
    "no function": (lambda: lt.eval_shape(X, X), "f must be a function"),
    "too few": (lambda: lt.eval_shape(lambda x, y: x, X), "'y'"),
    "unknown": (lambda: lt.eval_shape(UNKNOWN, X), "eval_shape: the shape of result 0"),
    "strings": (lambda: lt.eval_shape(np.sin, np.array(["a"])), "strings"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_say_what_was_found_and_where(name):
    call, message = WRONG[name]

    with pytest.raises(lt.LetirError, match=message) as caught:
        call()
    assert "test_result_types.py" in str(caught.value)
