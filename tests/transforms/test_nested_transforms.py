"""Every transform of every other, two and three deep, on plain and wrapped functions."""

import functools
import itertools

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close
from tests.each_sample import in_one_test

X = 0.7


def wave(x):
    """e^x sin 2x, whose derivatives have a closed form."""
    return np.exp(x) * np.sin(2 * x)


def derivative_of_wave(order, x=X):
    """The imaginary part of the derivative of e^(1 + 2i)x."""
    return float(np.imag((1 + 2j) ** order * np.exp((1 + 2j) * x)))


# ---- transforms from a function of one number to its derivative ----

DERIVATIVES = {
    "grad": lt.grad,
    "value_and_grad": lambda f: lambda x: lt.value_and_grad(f)(x)[1],
    "vjp": lambda f: lambda x: lt.vjp(f, x)[1](np.float64(1.0))[0],
    "jvp": lambda f: lambda x: lt.jvp(f, (x,), (np.float64(1.0),))[1],
    "linearize": lambda f: lambda x: lt.linearize(f, x)[1](np.float64(1.0)),
    "transposed": lambda f: (
        lambda x: lt.linear_transpose(lt.linearize(f, x)[1], x)(np.float64(1.0))[0]
    ),
    "jacfwd": lt.jacfwd,
    "jacrev": lt.jacrev,
    "jacobian": lt.jacobian,
    "mapped": lambda f: lambda x: lt.vmap(lt.grad(f))(np.stack([x, 2 * x]))[0],
    "mapped directions": lambda f: (
        lambda x: lt.vmap(lambda t: lt.jvp(f, (x,), (t,))[1])(np.ones(2))[1]
    ),
    "of a program": lambda f: lambda x: lt.grad(lt.trace(f, x))(x),
    "of a checkpoint": lambda f: lt.grad(lt.checkpoint(f)),
    "of a pair": lambda f: (
        lambda x: lt.differentiate(lt.trace(f, x)).joined()(x, np.ones_like(x))[1][0]
    ),
}
DEEP = ["grad", "jvp", "transposed", "jacfwd", "mapped", "of a program", "of a checkpoint"]


def nested(names):
    f = wave
    for name in names:
        f = DERIVATIVES[name](f)
    return f


@in_one_test
@pytest.mark.parametrize("outermost", DERIVATIVES)
def test_transforms_nest_two_deep(outermost):
    for inner in DERIVATIVES:
        found, order = nested((inner, outermost))(X), f"{inner} of {outermost}"
        np.testing.assert_allclose(derivative_of_wave(2), found, rtol=1e-11, err_msg=order)


@pytest.mark.parametrize("outermost", DEEP)
def test_transforms_nest_three_deep(outermost):
    """Every other triple: each pair of transforms is next to each other in some of them."""
    first = DEEP.index(outermost) % 2
    for inner in [*itertools.product(DEEP, repeat=2)][first::2]:
        names = (*inner, outermost)
        found, order = nested(names)(X), " of ".join(names)
        np.testing.assert_allclose(derivative_of_wave(3), found, rtol=1e-10, err_msg=order)


@in_one_test
@pytest.mark.parametrize("name", DERIVATIVES)
def test_the_second_derivatives_of_a_derivative(name):
    f = DERIVATIVES[name](wave)

    np.testing.assert_allclose(derivative_of_wave(3), lt.hessian(f)(X), rtol=1e-10)
    np.testing.assert_allclose(derivative_of_wave(3), lt.hvp(f, X, 1.0), rtol=1e-10)
    np.testing.assert_allclose(
        derivative_of_wave(3), DERIVATIVES[name](lt.hessian(wave))(X), rtol=1e-10
    )
    np.testing.assert_allclose(
        derivative_of_wave(3), DERIVATIVES[name](lambda x: lt.hvp(wave, x, 1.0))(X), rtol=1e-10
    )


# ---- Lambdas give Lambdas ----

PROGRAMS = {
    "grad": lt.grad,
    "jacfwd": lt.jacfwd,
    "jacrev": lt.jacrev,
    "checkpointed": lambda f: lt.grad(lt.checkpoint(f)),
}


@in_one_test
@pytest.mark.parametrize("names", list(itertools.product(PROGRAMS, repeat=3)), ids=" of ".join)
def test_transforms_of_lambdas_nest(names):
    program = lt.trace(wave, X)
    for name in names:
        program = lt.check(PROGRAMS[name](program))

    np.testing.assert_allclose(derivative_of_wave(3), program(X), rtol=1e-10)
    assert program == lt.parse(lt.dumps(program))


@pytest.mark.parametrize("transform", [lt.jacfwd, lt.jacrev, lt.jacobian, lt.hessian])
def test_a_gradient_is_transformed_as_its_joined_program(transform):
    gradient = lt.differentiate(lt.trace(wave, X))
    order = 2 if transform is lt.hessian else 1

    value, (slope,) = transform(gradient)(X, np.float64(3.0))

    np.testing.assert_allclose(derivative_of_wave(order), value, rtol=1e-11)
    np.testing.assert_allclose(3 * derivative_of_wave(order + 1), slope, rtol=1e-11)


# ---- wrapped functions ----


def doubled(f):
    """A decorator."""

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return 2 * f(*args, **kwargs)

    return wrapper


class Model:
    """A model whose methods are functions of arrays."""

    scale = 2.0

    def loss(self, x, power=1, *, shift=0.0):
        return self.scale * wave(x) ** power + shift

    @classmethod
    def of_class(cls, x):
        return cls.scale * wave(x)

    @staticmethod
    def static(x):
        return 2.0 * wave(x)

    def __call__(self, x):
        return self.loss(x)


WAVE = """lambda %0: float64*[] {
  %1: float64[] = exp(%0); %2: float64[] = mul(2, %0); %3: float64*[] = weaken(%2)
  %4: float64[] = sin(%3); %5: float64[] = mul(%1, %4); %6: float64[] = mul(2, %5)
  return %6
}"""
WRAPPED = {
    "decorated": doubled(wave),
    "decorated twice": functools.wraps(wave)(doubled(wave)),
    "partial": functools.partial(lambda c, x: c * wave(x), 2.0),
    "partial by keyword": functools.partial(lambda x, c=1.0: c * wave(x), c=2.0),
    "partial of a method": functools.partial(Model().loss, power=1, shift=3.0),
    "method": Model().loss,
    "class method": Model.of_class,
    "static method": Model.static,
    "callable": Model(),
    "cached": functools.lru_cache(lambda x: 2 * wave(x)).__wrapped__,
    "checkpointed": lt.checkpoint(lambda x: 2 * wave(x)),
    "a program": lt.parse(WAVE),
}


@in_one_test
@pytest.mark.parametrize("f", WRAPPED.values(), ids=WRAPPED)
@pytest.mark.parametrize("name", DERIVATIVES)
def test_transforms_accept_wrapped_functions(name, f):
    first, second = DERIVATIVES[name](f), lt.grad(DERIVATIVES[name](f))

    np.testing.assert_allclose(2 * derivative_of_wave(1), first(X), rtol=1e-12)
    np.testing.assert_allclose(2 * derivative_of_wave(2), second(X), rtol=1e-11)


@pytest.mark.parametrize("transform", [lt.grad, lt.jacfwd, lt.jacrev, lt.jacobian, lt.hessian])
def test_transforms_keep_the_name_of_a_function(transform):
    assert "wave" == transform(wave).__name__
    assert wave.__doc__ == transform(doubled(wave)).__doc__


@in_one_test
@pytest.mark.parametrize("transform", [lt.grad, lt.jacfwd, lt.jacrev, lt.jacobian])
@pytest.mark.parametrize("argnums", [0, 1, -1, (1,), (0, 1)])
def test_transforms_accept_argnums_defaults_and_keywords(transform, argnums):
    def f(x, y=2.0, *, c=1.0):
        return c * x * x * y

    both = (2 * X * 5.0 * 3.0, X * X * 3.0)
    expected = both[argnums] if isinstance(argnums, int) else tuple(both[i] for i in argnums)

    found = transform(f, argnums)(X, 5.0, c=3.0)
    partly = transform(functools.partial(f, c=3.0), argnums)(X, 5.0)

    for result in (found, partly):
        np.testing.assert_allclose(expected, result, rtol=1e-13)


def test_a_default_that_is_not_passed_is_not_an_argument():
    with pytest.raises(lt.BoundsError, match="no positional argument 1 among 1"):
        lt.grad(lambda x, y=2.0: x * y, 1)(X)


# ---- several arguments, vectors ----

V = np.array([0.3, -0.8, 1.2])
T = np.array([1.0, 0.5, -2.0])


def energy(x, p):
    return (np.tanh(x * p["a"]) * x).sum() + p["b"] * x[0]


P = {"a": V + 1, "b": 2.0}
HESSIANS = list(itertools.product((lt.jacfwd, lt.jacrev), (lt.grad, lt.jacfwd, lt.jacrev)))


@pytest.mark.parametrize(("outer", "inner"), HESSIANS)
def test_second_derivatives_by_two_arguments_are_symmetric_in_all_modes(outer, inner):
    by_x_by_p = outer(inner(energy, 0), 1)(V, P)
    by_p_by_x = outer(inner(energy, 1), 0)(V, P)

    assert_close(by_x_by_p["a"], by_p_by_x["a"].T)
    assert_close(by_x_by_p["b"], by_p_by_x["b"])
    assert_close(lt.hessian(energy, (0, 1))(V, P)[0][1], by_x_by_p)


PRODUCTS = {
    "forward over reverse": lambda f: lt.jvp(lt.grad(f), (V,), (T,))[1],
    "reverse over forward": lambda f: lt.grad(lambda x: lt.jvp(f, (x,), (T,))[1])(V),
    "reverse over reverse": lambda f: lt.vjp(lt.grad(f), V)[1](T)[0],
    "forward over forward": lambda f: lt.vmap(
        lambda e: lt.jvp(lambda x: lt.jvp(f, (x,), (e,))[1], (V,), (T,))[1]
    )(np.eye(3)),
    "linearized": lambda f: lt.linearize(lt.grad(f), V)[1](T),
    "transposed": lambda f: lt.linear_transpose(lt.linearize(lt.grad(f), V)[1], V)(T)[0],
    "of a checkpoint": lambda f: lt.hvp(lt.checkpoint(f), V, T),
    "in a map": lambda f: lt.vmap(lambda x, t: lt.hvp(f, x, t))(V[None], T[None])[0],
}


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_products_with_the_hessian_in_all_modes(product):
    def f(x):
        return energy(x, P) ** 2

    h = 1e-6
    expected = (lt.grad(f)(V + h * T) - lt.grad(f)(V - h * T)) / (2 * h)

    np.testing.assert_allclose(expected, product(f), rtol=1e-7)


def test_inner_derivatives_see_the_variables_of_outer_ones():
    """[B3]"""
    for outer, inner in itertools.product((lt.grad, lt.jacfwd, lt.jacrev), repeat=2):
        found = outer(lambda x, inner=inner: x * inner(lambda y: x * y * y)(x))(X)
        np.testing.assert_allclose(6 * X**2, found, rtol=1e-14)


def test_traced_python_numbers_are_tangents_of_any_precision():
    def slopes(x, t):
        narrow = np.float32(x)
        return lt.jvp(wave, (x,), (t,))[1], lt.jvp(np.sin, (narrow,), (t,))[1]

    wide, narrow = lt.trace(slopes, np.float64(X), 2.0)(np.float64(X), 2.0)

    np.testing.assert_allclose(2 * derivative_of_wave(1), wide)
    assert np.float32 == narrow.dtype


def test_hvp_checkpoint_and_vmap_of_a_gradient_use_its_joined_program():
    gradient = lt.differentiate(lt.trace(wave, X))
    ct = np.float64(3.0)

    value, (slope,) = lt.checkpoint(gradient)(X, ct)
    mapped = lt.vmap(gradient, (None, 0))(X, np.array([1.0, 3.0]))
    (out, (pulled,)), pull = lt.vjp(gradient, X, ct)
    bent = lt.hvp(lambda x: gradient.joined()(x, ct)[1][0], X, 1.0)

    np.testing.assert_allclose([wave(X), 3 * derivative_of_wave(1)], [value, slope])
    np.testing.assert_allclose([derivative_of_wave(1), 3 * derivative_of_wave(1)], mapped[1][0])
    np.testing.assert_allclose([wave(X), 3 * derivative_of_wave(1)], [out, pulled])
    np.testing.assert_allclose(3 * derivative_of_wave(2), pull((0.0, (1.0,)))[0])
    np.testing.assert_allclose(3 * derivative_of_wave(3), bent)
