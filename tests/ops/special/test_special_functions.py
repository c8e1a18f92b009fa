"""scipy.special: its ufuncs are recorded as NumPy's are, and computed by SciPy."""

import itertools
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy import special

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.ops.special.define import OF_SCIPY, ufunc_named
from letir.scipy import special as drop_in
from letir.testing import assert_close, assert_same, check_grads
from tests.each_sample import in_one_test

DTYPES = [np.dtype(c) for c in "?bhiqBHIQefdFD"]
X = np.array([0.5, 1.25, 2.0])


@in_one_test
@pytest.mark.parametrize("name", sorted(OF_SCIPY))
def test_the_type_rule_of_a_ufunc_agrees_with_scipy_for_all_dtypes_and_python_numbers(name):
    ufunc, op = ufunc_named(np, name), PRIMITIVES[OF_SCIPY[name]]
    operands = [*(np.ones(2, dtype) for dtype in DTYPES), 1, 1.0, 1j]
    if ufunc.nin > 2:
        operands = operands[1::3]

    for args in itertools.product(operands, repeat=ufunc.nin):
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                expected = ufunc(*args).dtype
        except TypeError:
            expected = TypeError
        try:
            with warnings.catch_warnings(action="ignore"):
                found = op(*args).dtype
        except TypeError:
            found = TypeError
        assert expected == found, args


@in_one_test
@pytest.mark.parametrize("name", sorted(n for n in OF_SCIPY if not n.startswith("_")))
def test_a_ufunc_of_traced_values_is_recorded_as_itself(name):
    ufunc = ufunc_named(np, name)
    args = [X[:1] / 4] * ufunc.nin if name != "wofz" else [X + 1j]
    if name in ("expn", "kn", "yn"):
        args[0] = np.array([2])
    if name in ("bdtr", "bdtrc", "nbdtr", "nbdtrc"):
        args[:2] = np.array([2]), np.array([5])

    f = lt.trace(ufunc, *args)

    assert [OF_SCIPY[name]] == [bind.op.name for bind in f.binds]
    assert_same(ufunc(*args), f(*args))


def test_python_functions_around_ufuncs_are_recorded():
    f = lt.trace(lambda x: special.zeta(x + 1) + special.zeta(2.0, x), X)

    assert ["add", "riemann_zeta", "zeta", "add"] == [bind.op.name for bind in f.binds]


def test_eager_variables_are_accepted():
    x = lt.Variable(X, requires_grad=True)

    special.erf(x).sum().backward()

    assert_close(2 / np.sqrt(np.pi) * np.exp(-X * X), x.grad.data)


def test_scipy_is_loaded_when_one_of_its_functions_is_computed():
    code = """
import sys, numpy as np, letir
f = letir.parse("lambda %0: float64[2] { %1 = erf(%0); return %1 }")
letir.trace(lambda x: np.sin(x).sum(), np.ones(2))
print("scipy" in sys.modules)
f(np.ones(2))
print("scipy" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ["False", "True"] == found.stdout.split()


def test_the_error_without_scipy_names_what_to_install():
    code = """
import sys, numpy as np, letir
sys.modules["scipy"] = None
try:
    letir.parse("lambda %0: float64[2] { %1 = erf(%0); return %1 }")(np.ones(2))
except letir.LetirError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "pip install 'letir[scipy]'" in found.stdout


def test_a_ufunc_without_a_record_is_an_error_that_names_it():
    with pytest.raises(lt.MissingRule, match=r"scipy\.special\.struve of traced values"):
        lt.trace(special.struve, 1.0, X)


def test_a_derivative_without_a_closed_form_is_a_missing_rule():
    for f in (special.jv, lambda q, x: special.zeta(q, x + 1.0)):
        with pytest.raises(lt.MissingRule, match="no closed form"):
            lt.grad(lambda v, x, f=f: f(v, x).sum())(1.5, X / 4)
        check_grads(lambda x, f=f: f(1.5, x), (X / 4,))


# ---- singularities and tails ----


def test_entropies_have_no_nan_gradient_where_the_derivative_exists():
    zero = np.zeros(1)

    assert_same((np.zeros(1),), lt.grad(lambda y: special.xlogy(zero, y).sum(), (0,))(zero))
    assert_same(zero, lt.grad(lambda x: special.xlog1py(x, zero).sum())(zero))
    assert_same(zero, lt.grad(lambda y: special.xlog1py(zero, y).sum())(zero - 1))
    assert_close(zero, lt.grad(lambda y: special.rel_entr(zero, y).sum())(zero + 2))
    assert_same(zero + 1, lt.grad(lambda y: special.kl_div(zero, y).sum())(zero + 2))


def test_derivatives_are_finite_at_removable_singularities():
    x = np.array([0.0, 1e-9, 0.0499, 0.0501])
    series = 1 / 2 + x / 3 + x**2 / 8 + x**3 / 30 + x**4 / 144 + x**5 / 840

    assert_close(series, lt.grad(lambda x: special.exprel(x).sum())(x), rtol=1e-9)
    at_zero = [lt.grad(lambda x, f=f: f(x))(0.0) for f in (special.j1, special.i1, special.i1e)]
    assert_same([np.float64(0.5)] * 3, at_zero)
    assert_close(
        np.array([-1.0, 2.0]),
        lt.grad(lambda x: special.rgamma(x).sum())(-X[:0].size - np.array([1.0, 2.0])),
    )
    assert_same(np.float64(-1.0), lt.grad(special.spence)(1.0))


# function -> (number, first and second derivative), by mpmath with 60 digits
TAILS = {
    "expit": [
        (40.0, 4.248354255291589e-18, -4.248354255291589e-18),
    ],
    "log_expit": [
        (-40.0, 1.0, -4.248354255291589e-18),
    ],
    "erfcx": [
        (24.0, -0.000976956038745829, 8.120226756548889e-05),
        (1000.0, -5.641887372654967e-07, 1.1283757819707055e-09),
        (100000000.0, -5.641895835477562e-17, 1.1283791670955122e-24),
    ],
    "dawsn": [
        (-24.0, -0.0008703259884508466, -7.271719612184914e-05),
        (1000.0, -5.00000750001875e-07, 1.00000300001125e-09),
        (100000000.0, -5.0000000000000005e-17, 1.0000000000000003e-24),
    ],
    "log_ndtr": [
        (-100000000.0, 100000000.00000001, -0.9999999999999999),
    ],
    "rgamma": [
        (0.0, 1.0, 1.1544313298030657),
        (-1.0, -1.0, 0.8455686701969343),
        (-3.0, -6.0, 15.073412021181605),
        (1e-20, 1.0, 1.1544313298030657),
    ],
    "spence": [
        (1.0, -1.0, 0.5),
        (1.04, -0.9805178288320324, 0.4744841823392717),
        (1.06, -0.9711484687329296, 0.46253737196392086),
    ],
}


@pytest.mark.parametrize("name", TAILS)
def test_first_and_second_derivatives_keep_their_digits_in_tails_and_at_poles(name):
    function = getattr(special, name)

    for x, first, second in TAILS[name]:
        assert_close(first, lt.grad(function)(x), rtol=1e-9, atol=0.0)
        assert_close(second, lt.grad(lt.grad(function))(x), rtol=1e-9, atol=0.0)


def test_the_derivative_of_log_ndtr_is_accurate_in_the_tail():
    x = np.array([-1e10, -40.0, 40.0])

    found = lt.grad(lambda x: special.log_ndtr(x).sum())(x)

    assert_close(np.array([1e10, 40.0249688473]), found[:2], rtol=1e-8)
    assert found[2] < 1e-300


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions_are_flat_at_infinity(name):
    f = getattr(special, name)

    for order in (1.0, 2.0, 0.5):
        assert lt.grad(f, (0, 1))(order, np.inf) == (0.0, 0.0)
    assert lt.grad(lt.grad(f, 1), 1)(2.0, np.inf) == 0.0
    assert lt.grad(lambda x: f(2.0, x).sum())(np.array([np.inf, 1.0]))[1] != 0


@pytest.mark.parametrize("a", [1e-3, 0.5, 3.0, 80.0, 4e3])
def test_the_derivative_of_gammainc_with_respect_to_its_shape_is_right(a):
    x = a * np.array([0.5, 0.9, 1.0, 1.1, 1.5])
    h = 1e-4 * a
    below, above = (special.gammainc(a + d, x) for d in (-h, h))

    found = lt.jvp(lambda a: special.gammainc(a, x), (a,), (1.0,))[1]

    assert_close((above - below) / (2 * h), found, rtol=1e-5, atol=1e-9 / a)


# ---- functions that are not ufuncs ----

B = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]])
A = np.array([[0.5, -1.25, 700.0], [1.5, 0.75, 710.0]])
CALLS = {
    "logsumexp": lambda m, a, b: m.logsumexp(a),
    "logsumexp axis": lambda m, a, b: m.logsumexp(a, axis=-1, keepdims=True),
    "logsumexp axes": lambda m, a, b: m.logsumexp(a, axis=(0, 1)),
    "logsumexp b": lambda m, a, b: m.logsumexp(a, axis=0, b=abs(b)),
    "logsumexp sign": lambda m, a, b: m.logsumexp(a, axis=1, b=-b, return_sign=True),
    "logsumexp -inf": lambda m, a, b: m.logsumexp(a - np.inf),
    "softmax": lambda m, a, b: m.softmax(a),
    "softmax axis": lambda m, a, b: m.softmax(a, axis=0),
    "log_softmax": lambda m, a, b: m.log_softmax(a, axis=1),
    "softplus": lambda m, a, b: m.softplus(a),
    "polygamma": lambda m, a, b: m.polygamma(2, abs(a)),
    "multigammaln": lambda m, a, b: m.multigammaln(abs(a) + 3, 3),
    "a list": lambda m, a, b: m.logsumexp([a[0, 0], 1.0, a[1, 1]]),
    "erf": lambda m, a, b: m.erf(a),
}


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_a_function_of_the_namespace_agrees_with_scipy(name):
    call = CALLS[name]
    expected = call(special, A, B)

    assert_same(expected, call(drop_in, A, B))
    with np.errstate(all="ignore"):
        f = lt.trace(lambda a, b: call(drop_in, a, b), A, B)
        assert_close(expected, f(A, B), rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in CALLS if "inf" not in n and n != "erf"])
def test_derivatives_of_the_namespace_agree_with_differences(name):
    a = A.copy()
    a[:, 2] = [0.25, -0.5]

    def f(a):
        out = CALLS[name](drop_in, a, B)
        return out[0] if isinstance(out, tuple) else out

    check_grads(f, (a,))


def test_weights_of_logsumexp_have_derivatives():
    check_grads(lambda a, b: drop_in.logsumexp(a, axis=1, b=b), (A / 100, abs(B) + 0.5))


def test_a_masked_minus_infinity_gives_no_nan_gradient():
    x = np.array([-np.inf, 1.0, -np.inf])

    for f in (drop_in.logsumexp, lambda x: drop_in.softmax(x)[1]):
        assert np.isfinite(lt.grad(f)(x)).all()
    assert_same(np.zeros(2), lt.grad(drop_in.logsumexp)(x[[0, 2]]))


def test_a_missing_derivative_of_a_function_of_one_operand_is_named():
    with pytest.raises(lt.MissingRule, match="no closed form"):
        lt.grad(special.zetac)(1.5)
