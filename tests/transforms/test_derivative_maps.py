"""The linear maps of vjp and linearize, and what they keep, in calls that record no function."""

import gc
import threading
import weakref

import numpy as np
import pytest

import letir as lt
from tests.executor.frequent_calls.each_transform import known_of

X = np.array([0.5, 1.5, 2.5])
TABLE = np.array([1.0, 2.0, 4.0])
CALLS = 9  # after which neither the function is recorded nor a linear program evaluated


def cubes(x):
    return x * x * x


def square_sum(x):
    return (x * x).sum()


def scaled(x):
    return (np.sin(x) * TABLE).sum()


def pulled(f, x, ct, **options):
    return lt.vjp(f, x, **options)[1](ct)[0]


def pushed(f, x, tangent, **options):
    return lt.linearize(f, x, **options)[1](tangent)


MAPS = {"vjp": pulled, "linearize": pushed}


def is_known(f):
    """Whether calls of ``f`` need no recording."""
    return any(known.calls for known in known_of(f))


@pytest.mark.parametrize("name", MAPS)
def test_a_map_belongs_to_its_own_call(name):
    make = {"vjp": lt.vjp, "linearize": lt.linearize}[name]
    maps = [make(cubes, X + k)[1] for k in range(CALLS)]

    assert is_known(cubes)
    for k, linear in enumerate(maps):
        result = linear(np.ones(3))
        result = result[0] if name == "vjp" else result
        np.testing.assert_array_equal(3 * (X + k) ** 2, result)


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("make", [lt.vjp, lt.linearize])
def test_a_map_shares_memory_with_primals_and_results_only_without_copies(make, copy):
    for _ in range(CALLS):
        x = np.ones(3)
        out, linear = make(np.exp, x, copy=copy)
        out[:] = 5.0
        result = linear(np.ones(3))
        np.testing.assert_array_equal(
            np.full(3, np.exp(1.0) if copy else 5.0), result[0] if make is lt.vjp else result
        )
        _, linear = make(cubes, x, copy=copy)
        x[:] = 2.0
        result = linear(np.ones(3))
        assert (np.asarray(result) == 3.0).all() == copy


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("make", [lt.vjp, lt.linearize])
def test_captured_values_and_results_are_not_those_of_other_calls(make, copy):
    """Neither are arrays that the function reads from outside."""

    def f(x):
        return np.sin(x) * TABLE.reshape(3, 1)[:, 0], TABLE, TABLE[1:]

    for _ in range(CALLS):
        out, linear = make(f, X.copy(), copy=copy)
        for array in (*linear.captured, *out):
            array[...] = np.nan
        out, linear = make(f, X.copy(), copy=copy)
        np.testing.assert_array_equal(np.sin(X) * TABLE, out[0])
        np.testing.assert_array_equal(TABLE, out[1])
        result = linear((X, X, X[1:])) if make is lt.vjp else linear(X)
        np.testing.assert_allclose(np.cos(X) * TABLE * X, result[0], rtol=1e-15)
        np.testing.assert_array_equal([1.0, 2.0, 4.0], TABLE)


def test_results_are_the_arrays_that_the_function_returns():
    """As in a recording: an argument itself, and a read-only view where NumPy gives one."""

    def f(x):
        return x, np.broadcast_to(x.sum(), (2,)), x[1:], np.broadcast_to(np.ones_like(x[0]), (2,))

    others: list = []
    for _ in range(CALLS):
        for out in (lt.vjp(f, X)[0], lt.jvp(f, (X,), (X,))[0], lt.linearize(f, X)[0]):
            assert out[0] is X
            assert not (out[1].flags.writeable or out[3].flags.writeable)
            assert out[2].base is X
            assert not any(np.may_share_memory(out[3], other) for other in others)
            others.append(out[3])


def test_the_program_of_a_map_is_the_same_in_each_call():
    for make in (lt.vjp, lt.linearize):
        texts = {str(make(scaled, X)[1].program) for _ in range(CALLS)}
        assert len(texts) == 1


@pytest.mark.parametrize("name", MAPS)
def test_a_map_gives_the_same_bits_by_the_evaluator_and_by_its_plan(name):
    x, direction = np.linspace(0.1, 2.0, 7), np.linspace(-1.0, 1.0, 7)
    f = lambda x: np.tanh(np.outer(x, x)).sum(axis=0) / x  # noqa: E731

    found = {MAPS[name](f, x, direction).tobytes() for _ in range(CALLS)}

    assert len(found) == 1


def test_an_integer_given_to_a_program_of_floats_is_a_float_for_its_map():
    program = lt.trace(lambda x: x**x, 2.0)
    for make in (lt.vjp, lt.linearize):
        _, linear = make(program, 3)

        assert {float, np.float64} >= {type(value) for value in linear.captured}
        assert len({np.asarray(linear(1.0)).tobytes() for _ in range(CALLS)}) == 1


def test_aux_is_that_of_the_call():
    def f(x, k):
        return (x * x).sum() * k, {"k": k, "name": "f"}

    for k in range(CALLS):
        _, pull, aux = lt.vjp(f, X + k, float(k), has_aux=True)
        assert aux == {"k": float(k), "name": "f"}
        np.testing.assert_array_equal(2 * k * (X + k), pull(1.0)[0])
        _, tangent, aux = lt.jvp(f, (X + k, float(k)), (X, 0.0), has_aux=True)
        assert aux == {"k": float(k), "name": "f"}
        assert tangent == pytest.approx(2 * k * ((X + k) @ X))
    assert is_known(f)


def test_arguments_without_a_derivative_have_the_cotangent_none():
    def f(tree, n, text):
        return sum(tree["w"] * n) + len(text)

    for n in range(CALLS):
        cotangents = lt.vjp(f, {"w": X, "n": 3}, n, "abc")[1](1.0)
        np.testing.assert_array_equal(np.full(3, float(n)), cotangents[0]["w"])
        assert (cotangents[0]["n"], *cotangents[1:]) == (None, None, None)
    assert is_known(f)


@pytest.mark.parametrize("make", [lt.vjp, lt.linearize])
def test_errors_of_a_map_are_the_same_in_each_call(make):
    def errors():
        found = []
        for args in ((), (X, X), (X[:2],), ("text",), ([1.0, 2.0, 3.0],), (X.astype(complex),)):
            with pytest.raises(lt.LetirError) as caught:
                make(cubes, X)[1](*args)
            found.append((type(caught.value), str(caught.value)))
        return found

    first, *others = [errors() for _ in range(CALLS)]
    assert others == [first] * (CALLS - 1)


def test_nested_in_other_transforms_after_calls_of_its_own():
    """A known call must not run while an outer transform records."""
    for _ in range(CALLS):
        pulled(scaled, X, 1.0), pushed(scaled, X, X), lt.jvp(scaled, (X,), (X,))
        lt.hvp(scaled, (X,), (X,))
    assert is_known(scaled)
    second = -np.sin(X) * TABLE
    for _ in range(CALLS):
        for inner in (
            lambda x: pulled(scaled, x, 1.0).sum(),
            lambda x: pushed(scaled, x, np.ones(3)),
            lambda x: lt.jvp(scaled, (x,), (np.ones(3),))[1],
        ):
            np.testing.assert_allclose(second, lt.grad(inner)(X), rtol=1e-15)
            np.testing.assert_allclose(second, lt.jit(lt.grad(inner))(X), rtol=1e-15)
            np.testing.assert_allclose(second, lt.trace(lt.grad(inner), X)(X + 0), rtol=1e-15)
            np.testing.assert_allclose(second, pulled(inner, X, 1.0), rtol=1e-15)
        product = lt.jit(lambda x: lt.hvp(scaled, x, np.ones(3)))(X)
        np.testing.assert_allclose(second, product, rtol=1e-15)


def test_traced_cotangents_of_a_known_call():
    _, pull = [lt.vjp(cubes, X) for _ in range(CALLS)][-1]
    _, lin = [lt.linearize(cubes, X) for _ in range(CALLS)][-1]
    for _ in range(3):
        pull(X), lin(X)

    np.testing.assert_array_equal(3 * X**2, lt.grad(lambda ct: pull(ct)[0].sum())(X))
    np.testing.assert_array_equal(3 * X**2 * X, lt.jit(lin)(X))


def test_variables_of_eager_mode_are_recorded():
    for _ in range(CALLS):
        pulled(cubes, X, X)
    x = lt.Variable(X.copy(), requires_grad=True)
    _, pull = lt.vjp(cubes, x)
    pull(np.ones(3))[0].sum().backward()

    np.testing.assert_allclose(6 * X, x.grad, rtol=1e-15)


TRANSFORMS = {
    **MAPS,
    "jvp": lambda f, x, v: lt.jvp(f, (x,), (v,)),
    "hvp": lambda f, x, v: lt.hvp(square_sum, x, v),
    "a function by hvp": lambda f, x, v: lt.hvp(square_sum)(x, v),
    "ggnvp": lambda f, x, v: lt.ggnvp(f, square_sum, (x,), (v,)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_what_is_remembered_keeps_no_argument_alive(name):
    for _ in range(CALLS):
        x, v = X.copy(), np.ones(3)
        TRANSFORMS[name](cubes, x, v)
    alive = [weakref.ref(x), weakref.ref(v)]
    del x, v
    gc.collect()

    assert [reference() for reference in alive] == [None, None]


def test_threads_share_what_is_known():
    def work():
        for n in range(50):
            x = X + n % 3
            found.append(np.allclose(3 * x**2 * X, pulled(cubes, x, X), rtol=1e-15))

    found: list = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert found == [True] * 200
