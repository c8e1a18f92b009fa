"""NumPy's functions in the rules of users' operations."""

import numpy as np
import pytest

import letir as lt
from letir.testing import check_grads

X = np.array([1.0, 2.0, 0.5])
FACTORS = {
    "where": lambda x: np.where(np.isnan(x), 0.0, x),
    "a list of arrays": lambda x: np.stack([x, 2 * x])[1],
    "several binds": lambda x: np.split(x, 3)[0],
    "a function that letir writes with others": lambda x: np.full_like(x, 2.0),
    "linear algebra": lambda x: np.linalg.solve(np.eye(3) + np.outer(x, x), x),
    "shapes": lambda x: x * np.ndim(x) + np.ones(np.shape(x)),
    "a method of a ufunc": lambda x: np.maximum.outer(x, x)[0] * np.add.reduce(x),
    "a ufunc with a keyword": lambda x: np.exp(x, dtype=np.float32),
}


def operation(factor):
    return lt.primitive(
        "rule_calls.exp",
        impl=lambda xp, x: xp.exp(x),
        aval=lambda x: x,
        vjp=lambda ct, y, x: (ct * factor(x),),
    )


@pytest.mark.parametrize("factor", FACTORS.values(), ids=FACTORS)
def test_rules_compute_with_numpy_functions(factor):
    op = operation(factor)
    expected = np.ones(3) * factor(X)
    np.testing.assert_allclose(lt.grad(lambda x: op(x).sum())(X), expected)
    np.testing.assert_allclose(lt.jit(lt.grad(lambda x: op(x).sum()))(X), expected)


def test_rules_of_programs_without_types_are_recorded():
    operation(lambda x: np.where(x > 0, np.linalg.norm(x), 0))
    f = lt.parse("lambda %0 { %1 = rule_calls.exp(%0); %2 = sum(%1); return %2 }")
    assert "where(" in str(lt.grad(f))
    np.testing.assert_allclose(lt.grad(f)(X), np.full(3, np.linalg.norm(X)))


def test_rules_with_numpy_functions_are_differentiated_again():
    op = lt.primitive(
        "rule_calls.cube",
        impl=lambda xp, x: x * x * x,
        aval=lambda x: x,
        vjp=lambda ct, y, x: (np.multiply(ct, np.sum(3 * np.square(x)[None], axis=0)),),
        jvp=lambda tangents, y, x: tangents[0] * np.sum(3 * np.square(x)[None], axis=0),
    )
    check_grads(op, (X,), order=2)


def test_functions_that_read_elements_are_refused():
    op = operation(np.unique)
    with pytest.raises(lt.MissingRule, match=r"numpy\.unique of traced values is not recorded"):
        lt.grad(lambda x: op(x).sum())(X)
