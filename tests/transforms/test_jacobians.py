"""jacfwd, jacrev, jacobian: argnums, nesting, dtypes, empty arrays, errors."""

import functools

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, assert_same
from tests.each_sample import in_one_test

X = np.linspace(0.1, 1.0, 4)
W = np.cos(np.arange(12.0)).reshape(3, 4)
MODES = [lt.jacfwd, lt.jacrev, lt.jacobian]
every_mode = pytest.mark.parametrize("jac", MODES, ids=lambda jac: jac.__name__)


def layer(x):
    return np.tanh(W @ x)


LAYER = (1 - layer(X) ** 2)[:, None] * W


@every_mode
def test_the_jacobian_of_a_function_is_a_function_and_of_a_lambda_a_lambda(jac):
    program = jac(lt.trace(layer, X))

    assert isinstance(lt.check(program), lt.Lambda)
    assert_close(LAYER, jac(layer)(X))
    assert_close(LAYER, program(X))
    assert_same(program(X), lt.parse(lt.dumps(program))(X))


@every_mode
def test_a_gradient_stands_for_its_joined_program(jac):
    gradient = lt.differentiate(lt.trace(layer, X))

    found = jac(gradient)(X, np.ones(3))

    assert_close(LAYER, found[0])
    assert_close(lt.jacobian(lambda x: np.ones(3) @ lt.jacobian(layer)(x))(X), found[1][0])


@every_mode
def test_the_size_of_the_program_does_not_depend_on_the_arrays(jac):
    """One batched program, no loop."""

    def binds(n):
        return len(jac(lt.trace(lambda x: np.tanh(x @ np.ones((n, n))), np.ones(n))))

    assert binds(3) == binds(30) <= 12


@in_one_test
@every_mode
@pytest.mark.parametrize("argnums", [0, 1, -1, (0, 1), [1], (1, 0), (0, 0)])
def test_argnums_choose_the_arguments(jac, argnums):
    found = jac(lambda x, y: x[:2] * y, argnums)(X, X[2:])
    by_x = np.concatenate([np.diag(X[2:]), np.zeros((2, 2))], axis=1)
    both = (by_x, np.diag(X[:2]))
    expected = both[argnums] if isinstance(argnums, int) else tuple(both[i] for i in argnums)

    assert_close(expected, found)


@every_mode
def test_the_jacobian_nests_as_the_results_and_inside_as_the_arguments(jac):
    def f(p, q):
        return {"u": p["a"] * q.sum(), "v": (p["b"][0] * p["a"].sum(), q)}

    p, q = {"a": X, "b": [2.0]}, np.ones((2, 3))

    found = jac(f, (0, 1))(p, q)

    shapes = {"u": (4,), "v": ((), (2, 3))}
    of_u, of_v = found["u"], found["v"][0]
    assert_close(
        (({"a": 6 * np.eye(4), "b": [np.zeros(4)]}), np.outer(X, q).reshape(4, 2, 3)), of_u
    )
    assert_close(np.full(4, 2.0), of_v[0]["a"])
    assert_close(X.sum(), of_v[0]["b"][0])
    assert_close(np.eye(6).reshape(2, 3, 2, 3), found["v"][1][1])
    assert shapes["v"][1] + (4,) == found["v"][1][0]["a"].shape
    assert_close(found, jac(lt.trace(f, p, q), (0, 1))(p, q))


@every_mode
def test_aux_is_returned_with_the_jacobian(jac):
    def f(x):
        return layer(x), {"norm": (x**2).sum(), "n": np.argmax(x)}

    found, aux = jac(f, has_aux=True)(X)

    assert_close(LAYER, found)
    assert_same({"norm": (X**2).sum(), "n": np.int64(3)}, aux)
    assert_close(found, jac(lt.trace(f, X), has_aux=True)(X)[0])
    with pytest.raises(lt.ShapeError, match=r"must return \(value, aux\)"):
        jac(layer, has_aux=True)(X)


@every_mode
def test_jacobians_of_scalars_and_empty_arrays(jac):
    assert_close(np.cos(0.7), jac(np.sin)(0.7))
    assert_close(np.diag(np.cos(X)), jac(np.sin)(X))
    assert_close(np.ones(4), jac(np.sum)(X))
    assert_close(np.arange(3.0), jac(lambda x: x * np.arange(3.0))(2.0))
    assert_same(np.zeros((4, 0)), jac(lambda x: X * x.sum())(np.zeros(0)))
    assert_same(np.zeros((0, 4)), jac(lambda x: x[:0])(X))
    assert_same(np.zeros((2, 0, 2, 0)), jac(lambda x: 2 * x)(np.zeros((2, 0))))


@every_mode
def test_results_that_do_not_depend_on_an_argument_have_zero_blocks(jac):
    found = jac(lambda x, y: (x * 2, np.ones(2), y), (0, 1))(X, 3.0)

    assert_same(np.zeros((4,)), found[0][1])
    assert_same((np.zeros((2, 4)), np.zeros(2)), found[1])
    assert_same(np.zeros(4), found[2][0])
    assert_close(np.float64(1.0), found[2][1])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
@every_mode
def test_low_precision_is_kept(jac, dtype):
    x = X.astype(dtype)

    found = jac(lambda x: np.tanh(x) * 2.0 + x[0] / 3, holomorphic=True)(x)

    assert np.dtype(dtype) == found.dtype


def test_reverse_mode_has_the_arguments_dtype_and_forward_mode_the_results():
    def f(x):
        return x.astype(np.float64) ** 2

    x = X.astype(np.float32)

    assert np.float32 == lt.jacrev(f)(x).dtype
    assert np.float64 == lt.jacfwd(f)(x).dtype


@every_mode
def test_holomorphic_functions_have_a_complex_jacobian(jac):
    z = X + 1j

    assert_close(np.diag(2 * z), jac(lambda z: z * z, holomorphic=True)(z))
    with pytest.raises(lt.DTypeError, match="pass holomorphic=True"):
        jac(lambda z: z * z)(z)


def test_a_real_result_of_complex_arguments_is_taken_in_reverse_mode():
    z = X + 1j

    for jac in (lt.jacrev, lt.jacobian):
        assert_close(np.diag(2 * z.conj()), jac(lambda z: abs(z) ** 2)(z))
    with pytest.raises(lt.DTypeError, match=r"an argument is complex128\[4\].*\n.*letir.jacrev"):
        lt.jacfwd(lambda z: abs(z) ** 2)(z)


def test_a_complex_result_of_real_arguments_is_taken_in_forward_mode():
    for jac in (lt.jacfwd, lt.jacobian):
        assert_close(np.diag(1j * np.exp(1j * X)), jac(lambda x: np.exp(1j * x))(X))
    with pytest.raises(lt.DTypeError, match=r"a result is complex128\[4\].*\n.*letir.jacfwd"):
        lt.jacrev(lambda x: np.exp(1j * x))(X)


@every_mode
def test_integers_have_no_derivative(jac):
    name = jac.__name__
    with pytest.raises(lt.DTypeError, match=rf"{name}: n is int64\[3\], which has no derivative"):
        jac(lambda n: n * 2.0)(np.arange(3))
    with pytest.raises(lt.DTypeError, match=rf"{name}: x is int64\*\[\].*\n.*pass a float"):
        jac(lambda x: x * 2.0)(3)
    with pytest.raises(lt.DTypeError, match=rf"{name}: b is bool\[2\]"):
        jac(lambda b: b * 2.0)(np.array([True, False]))
    with pytest.raises(lt.DTypeError, match=r"result 1 is int64\[\].*\n.*has_aux=True"):
        jac(lambda x: (x, np.argmax(x)))(X)
    with pytest.raises(lt.BoundsError, match="no positional argument 2 among 1"):
        jac(np.sin, 2)(X)


@every_mode
def test_unknown_sizes_are_an_error_with_the_remedy(jac):
    with pytest.raises(lt.ShapeError, match="must be known"):
        jac(lt.parse("lambda %0 { %1 = exp(%0); return %1 }"))
    with pytest.raises(lt.ShapeError, match=r"float64\[n\]"):
        jac(lt.trace(np.exp, lt.ShapeDtype("n")))


def test_jacobian_chooses_the_mode_by_sizes_and_available_rules():
    def counted(n_in, n_out):
        program = lt.jacobian(lt.trace(lambda x: np.ones((n_out, n_in)) @ x, np.ones(n_in)))
        return [bind.attrs["n"] for bind in program.binds if bind.op.name == "eye"]

    assert [[3], [3], [3]] == [counted(3, 7), counted(7, 3), counted(3, 3)]

    @lt.custom_vjp
    def sine(x):
        return np.sin(x)

    sine.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (ct * np.cos(x),))
    assert_close(np.full(5, np.cos(0.5)), lt.jacobian(lambda x: sine(x) * np.ones(5))(0.5))
    assert_close(np.diag(np.cos(X)), lt.jacfwd(sine)(X))


@every_mode
def test_jacobians_of_keywords_methods_and_partials(jac):
    class Model:
        w = W

        def layer(self, x, *, scale=1.0):
            return scale * np.tanh(self.w @ x)

        def __call__(self, x):
            return self.layer(x)

    model = Model()

    assert_close(2 * LAYER, jac(model.layer)(X, scale=2.0))
    assert_close(3 * LAYER, jac(functools.partial(model.layer, scale=3.0))(X))
    assert_close(LAYER, jac(model)(X))


@every_mode
def test_static_leaves_become_None_in_the_jacobian(jac):
    found = jac(lambda p: p["w"] ** 2 if p["square"] else p["w"])({"w": X, "square": True})

    assert found["square"] is None
    assert_close(np.diag(2 * X), found["w"])


@every_mode
def test_a_jacobian_inside_another_trace_is_inlined(jac):
    program = lt.trace(lambda x: jac(layer)(x).sum(), X)

    assert_close(LAYER.sum(), program(X))
    assert_close(lt.grad(lambda x: lt.jacrev(layer)(x).sum())(X), lt.grad(program)(X))


@every_mode
def test_vmap_agrees_with_a_loop_over_examples(jac):
    batch = np.stack([X, 2 * X])

    assert_close(np.stack([jac(layer)(x) for x in batch]), lt.vmap(jac(layer))(batch))


@every_mode
def test_the_jacobian_keeps_guards(jac):
    """[C5]"""
    program = jac(lt.trace(lambda x: x**2 if x[0] > 0 else x**3, X))

    assert_close(np.diag(2 * X), program(X))
    with pytest.raises(lt.GuardError):
        program(-X)


@every_mode
def test_the_jacobian_shares_no_memory(jac):
    """[C2]"""
    a, b = jac(lambda x: (x + 1, x + 2))(X)

    a += 1

    assert_same(np.eye(4), b)
