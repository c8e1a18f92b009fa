"""numpy.linalg on traced values: derivatives that the laws of single operations do not cover,
points without a derivative, and the types of NumPy's results.
"""

import math

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.ast.primitive import PRIMITIVES
from letir.testing import SAMPLES, applied_program, assert_close, assert_same, check_grads
from tests.each_sample import in_one_test

A = np.array([[2.0, 0.3, -0.5], [0.1, 1.5, 0.7], [-0.2, 0.4, -1.8]])
TURN = np.array([[0.4, -1.2, 0.3], [0.9, 0.2, -0.1], [0.2, 0.5, 1.1]])
C = A + 1j * TURN
POSITIVE, HERMITIAN = A @ A.T + np.eye(3), C @ C.conj().T + np.eye(3)
TALL = np.array([[1.0, -0.4, 0.2], [0.3, 2.0, -0.8], [-0.7, 0.6, 1.4], [0.5, 0.1, -0.3]])
THIN = TALL + 0.3j * TALL[::-1]
LINE = np.array([0.5, -1.25, 2.0])


def on_both_triangles(f):
    """``f`` of the Hermitian part: NumPy reads one triangle, finite differences must move both."""
    return lambda x: f((x + np.conj(np.swapaxes(x, -1, -2))) / 2)


# ---- Hermitian matrices ----


def scaled(w, v):
    """A function of eigenvalues and eigenvectors that is invariant under phases."""
    return w, (v * np.exp(w / 9)) @ np.conj(v.T)


OF_HERMITIAN = {
    "cholesky": np.linalg.cholesky,
    "upper cholesky": lambda x: np.linalg.cholesky(x, upper=True),
    "eigh": lambda x: scaled(*np.linalg.eigh(x)),
    "eigh of the upper triangle": lambda x: scaled(*np.linalg.eigh(x, "U")),
    "eigvalsh": np.linalg.eigvalsh,
    "pinv": lambda x: np.linalg.pinv(x, hermitian=True),
    "svd": lambda x: np.linalg.svd(x, compute_uv=False, hermitian=True),
    "svd with vectors": lambda x: (lambda u, s, vh: (u * s**2) @ vh)(
        *np.linalg.svd(x, hermitian=True)
    ),
}


@in_one_test
@pytest.mark.parametrize("x", [POSITIVE, HERMITIAN], ids=["real", "complex"])
@pytest.mark.parametrize("name", OF_HERMITIAN)
def test_derivatives_with_respect_to_hermitian_matrices_agree_with_differences(name, x):
    check_grads(on_both_triangles(OF_HERMITIAN[name]), (x,))


@pytest.mark.parametrize("name", ["cholesky", "eigvalsh", "pinv"])
def test_the_cotangent_of_a_hermitian_matrix_is_split_between_both_triangles(name):
    g = lt.grad(lambda x: np.real(np.sum(OF_HERMITIAN[name](x) * A[0])))(HERMITIAN)

    assert_close(np.conj(g.T), g)


def test_real_eigenvectors_agree_with_differences():
    check_grads(on_both_triangles(np.linalg.eigh), (POSITIVE,))


# ---- results that are unique up to a phase or a basis ----


def product(u, s, vh):
    """A function of a decomposition that is invariant under phases."""
    return (u * np.sqrt(s)) @ vh, s


@pytest.mark.parametrize("x", [THIN, THIN.T], ids=["tall", "wide"])
def test_complex_singular_vectors_agree_with_differences(x):
    check_grads(lambda x: product(*np.linalg.svd(x, full_matrices=False)), (x,))


def test_null_space_vectors_of_a_svd_have_the_derivative_of_their_span():
    def left(x):
        u = np.linalg.svd(x).U
        return u[:, 3:] @ np.conj(u[:, 3:].T)

    def right(x):
        vh = np.linalg.svd(x).Vh
        return np.conj(vh[3:].T) @ vh[3:]

    check_grads(left, (THIN,))
    check_grads(right, (THIN.T,))


def test_null_space_columns_of_a_complete_qr_have_the_derivative_of_their_span():
    def beside(x):
        q, r = np.linalg.qr(x, mode="complete")
        return q[:, 3:] @ np.conj(q[:, 3:].T), r

    check_grads(beside, (THIN,))


def test_complex_eigenvectors_have_the_normalisation_and_phase_of_lapack():
    check_grads(np.linalg.eig, (C,))
    check_grads(np.linalg.eig, (TURN,))


# ---- degenerate cases ----


def test_symmetric_functions_of_equal_eigenvalues_have_a_derivative():
    x = np.diag([2.0, 2.0, 3.0])

    g = lt.grad(lambda x: np.sum(np.linalg.eigvalsh(x) ** 3))(x)

    assert_close(3 * x @ x, g)


def test_the_projector_on_an_eigenspace_has_a_derivative():
    def projector(x):
        v = np.linalg.eigh(x).eigenvectors[:, :2]
        return v @ v.T

    check_grads(on_both_triangles(projector), (np.diag([2.0, 2.0, 5.0]),), order=1)


def test_equal_singular_values_give_no_nan():
    u, s, vh = lt.jacobian(lambda x: tuple(np.linalg.svd(x)))(np.eye(2))

    assert all(np.isfinite(part).all() for part in (u, s, vh))


def test_the_nuclear_norm_of_a_singular_matrix_has_a_subgradient():
    g = lt.grad(lambda x: np.linalg.norm(x, "nuc"))(np.diag([2.0, 0.0]))

    assert_close(np.array([1.0, 0.0]), np.abs(g[0]))
    assert np.linalg.norm(g, 2) <= 1 + 1e-12


@pytest.mark.parametrize(
    "x", [np.zeros((2, 2)), np.eye(3), np.outer(LINE, LINE), np.diag([1.0, 0.0, 0.0])]
)
def test_a_determinant_has_two_derivatives_at_singular_matrices(x):
    check_grads(np.linalg.det, (x,))
    check_grads(np.linalg.det, (x + 0j,))


def square_stack(dtype, seed=3):
    """Matrices of full rank, of ranks 3 and 2, nearly singular, and of zeros."""
    rng = np.random.default_rng(seed)
    full = rng.normal(size=(6, 4, 4))
    if np.dtype(dtype).kind == "c":
        full = full + 1j * rng.normal(size=(6, 4, 4))
    full[1, :, 3] = full[1, :, 2]
    full[2, :, 2:] = full[2, :, :2]
    full[3, :, 3] = full[3, :, 2] * (1 + 1e-9)
    full[4] = 0
    full[5] *= 1e-3
    return full.astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_cofactors_of_all_ranks_are_determinants_of_minors(dtype):
    stack = square_stack(dtype)
    minors = [
        [
            (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(stack, i, 1), j, 2).astype("c16"))
            for j in range(4)
        ]
        for i in range(4)
    ]
    expected = np.moveaxis(np.array(minors), -1, 0)
    compute = PRIMITIVES["cofactors"].impl.for_numpy
    small = 1e-4 if dtype in ("f4", "c8") else 1e-10

    for x, cofactors in ((stack, expected), *zip(stack, expected, strict=True)):
        found = compute(np, x)

        assert found.dtype == x.dtype
        np.testing.assert_allclose(found, cofactors, rtol=small, atol=small)
    assert compute(np, stack[:0]).shape == (0, 4, 4)
    assert compute(np, np.zeros((2, 0, 0), dtype)).shape == (2, 0, 0)


@pytest.mark.parametrize("ord", [None, 2, 1, math.inf, 3, 0.5, "fro", "nuc"])
def test_the_gradient_of_a_norm_at_0_is_0_or_a_subgradient(ord):
    """[D13]"""
    x = np.zeros((2, 2)) if isinstance(ord, str) else np.zeros(3)

    g = lt.grad(lambda x: np.linalg.norm(x, ord))(x)

    assert np.isfinite(g).all()
    assert not g.any() or ord == "nuc"


def test_a_norm_of_a_vector_with_zero_elements_has_a_second_derivative():
    check_grads(np.linalg.norm, (np.array([0.0, 3.0, 4.0]),))
    check_grads(lambda x: np.linalg.norm(x, 4), (np.array([0.0, 3.0, 4.0]),))


@pytest.mark.parametrize("f", [np.linalg.inv, lambda x: np.linalg.solve(x, LINE[:2])])
def test_a_singular_matrix_raises_numpys_error_with_the_let_line(f):
    program = lt.trace(f, np.eye(2))

    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix") as told:
        program(np.zeros((2, 2)))
    assert "letir: in %" in told.value.__notes__[0]


def test_pinv_of_deficient_rank_has_the_derivative_at_constant_rank():
    low = np.outer(LINE, [1.0, 2.0])

    check_grads(lambda a, b: np.linalg.pinv(np.outer(a, b)), (LINE, np.array([1.0, 2.0])))
    assert np.isfinite(lt.grad(lambda x: np.sum(np.linalg.pinv(x)))(low)).all()


# ---- data-dependent results ----


REAL_OR_COMPLEX = pytest.mark.skipif(
    np.linalg.eigvals(np.eye(1)).dtype.kind == "c",
    reason="from 2.5 on NumPy gives complex eigenvalues of every real matrix",
)


@REAL_OR_COMPLEX
def test_eigenvalues_that_become_complex_fail_a_guard():
    """[B2]"""
    program = lt.trace(np.linalg.eigvals, np.diag([1.0, 2.0]))

    with pytest.raises(lt.GuardError, match="all eigenvalues were real"):
        program(np.array([[0.0, 1.0], [-1.0, 0.0]]))


@REAL_OR_COMPLEX
def test_eigenvalues_that_become_real_fail_a_guard():
    """[B2]"""
    rotation = np.array([[0.0, 1.0], [-1.0, 0.0]])
    program, jitted = lt.trace(np.linalg.eigvals, rotation), lt.jit(np.linalg.eigvals)

    with pytest.raises(lt.GuardError, match="some eigenvalues were not real"):
        program(np.diag([1.0, 2.0]))
    for matrix in (rotation, np.diag([1.0, 2.0]), rotation):
        assert_same(np.linalg.eigvals(matrix), jitted(matrix))


@REAL_OR_COMPLEX
def test_eig_of_a_real_matrix_without_a_value_is_an_error_with_a_remedy():
    with pytest.raises(lt.TraceError, match=r"x\.astype\(complex\)"):
        lt.trace(np.linalg.eig, lt.ShapeDtype((2, 2)))

    lt.trace(np.linalg.eig, lt.ShapeDtype((2, 2), complex))


def test_the_rank_in_least_squares_is_guarded():
    full = lt.trace(np.linalg.lstsq, TALL, TALL[:, 0])
    low = lt.trace(np.linalg.lstsq, np.ones((4, 3)), TALL[:, 0])

    assert_same(tuple(np.linalg.lstsq(TALL, TALL[:, 1])), full(TALL, TALL[:, 1]))
    assert_same(
        tuple(np.linalg.lstsq(np.ones((4, 3)), LINE[[0, 1, 2, 0]]))[1:3],
        low(np.ones((4, 3)), LINE[[0, 1, 2, 0]])[1:3],
    )
    for program, a in ((full, np.ones((4, 3))), (low, TALL)):
        with pytest.raises(lt.GuardError, match="rank"):
            program(a, LINE[[0, 1, 2, 0]])


# ---- result types and spellings ----


@pytest.mark.parametrize("name", ["eig", "eigh", "qr", "svd", "slogdet"])
def test_results_are_numpys_named_tuples(name):
    function = getattr(np.linalg, name)
    kinds = []

    def f(x):
        found = function(x)
        kinds.append(type(found))
        return found

    program = lt.trace(f, POSITIVE)

    assert [type(function(POSITIVE))] == kinds
    assert_same(function(POSITIVE), program(POSITIVE))
    assert len(program) == 1


ONE_RESULT = {
    "svd without vectors": lambda x: np.linalg.svd(x, compute_uv=False),
    "r of qr": lambda x: np.linalg.qr(x, mode="r"),
    "svdvals": np.linalg.svdvals,
    "pinv by the precision": lambda x: np.linalg.pinv(x, rtol=None),
    "pinv with a cutoff": lambda x: np.linalg.pinv(x, 0.1),
    "rank by a cutoff": lambda x: np.linalg.matrix_rank(x, 0.1),
    "rank by a relative cutoff": lambda x: np.linalg.matrix_rank(x, rtol=0.1),
    "condition": lambda x: np.linalg.cond(x, "fro"),
    "power": lambda x: np.linalg.matrix_power(x, -3),
}


@pytest.mark.parametrize("name", ONE_RESULT)
def test_a_call_is_one_bind_with_numpys_result(name):
    f = ONE_RESULT[name]
    program = lt.trace(f, POSITIVE)

    assert_same(f(POSITIVE), program(POSITIVE))
    assert len(program) == 1


SPELLINGS = {
    "vecdot": lambda x: np.linalg.vecdot(x, x[0], axis=0),
    "outer": lambda x: np.linalg.outer(x[0], x[1]),
    "cross": lambda x: np.linalg.cross(x, x[::-1]),
    "matmul": lambda x: np.linalg.matmul(x, x),
    "tensordot": lambda x: np.linalg.tensordot(x, x, axes=1),
    "diagonal": lambda x: np.linalg.diagonal(x, offset=1),
    "trace": np.linalg.trace,
    "matrix_transpose": np.linalg.matrix_transpose,
    "einsum_path": lambda x: x * len(np.einsum_path("ij,jk", x, x)[0]),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_other_spellings_agree_with_numpy(name):
    f = SPELLINGS[name]

    assert_same(f(A), lt.trace(f, A)(A))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.linalg.outer(x, x),
        lambda x: np.linalg.cross(x[:, :2], x[:, :2]),
        lambda x: np.linalg.solve(x, x[:2]),
        lambda x: np.linalg.inv(x[:2]),
        lambda x: np.linalg.norm(x[0], "fro"),
        lambda x: np.linalg.eigh(x, "M"),
        lambda x: np.linalg.pinv(x, 0.1, rtol=0.1),
        lambda x: np.tensordot(x, x[:2]),
    ],
)
def test_a_call_that_numpy_refuses_is_refused_when_traced(f):
    with pytest.raises(ValueError):
        f(A)
    with pytest.raises(lt.ShapeError):
        lt.trace(f, A)


def test_half_precision_is_refused_as_in_numpy():
    with pytest.raises(lt.DTypeError, match="float16"):
        lt.trace(np.linalg.inv, A.astype(np.float16))


def test_qr_in_raw_mode_is_refused_with_the_recorded_modes():
    with pytest.raises(lt.MissingRule, match="mode='reduced'"):
        lt.trace(lambda x: np.linalg.qr(x, "raw"), A)


# ---- lists, and axes of stacked products ----


def test_functions_of_letir_numpy_accept_lists_of_traced_values():
    def f(t, u):
        x = lnp.linalg.solve([[t, 1.0], [0.0, u]], [t, u])
        return lnp.linalg.multi_dot([x, [[t, u], [u, t]], [u, t]]), lnp.linalg.norm([3 * t, 4 * t])

    assert_same(f(2.0, 3.0), lt.trace(f, 1.0, 2.0)(2.0, 3.0))
    check_grads(f, (2.0, 3.0))


B, V = np.linspace(-1.0, 1.3, 24).reshape(2, 3, 4), LINE
AXES = {
    "axis of vecdot": lambda x, v: np.vecdot(x, x * 2, axis=1),
    "kept axis of vecdot": lambda x, v: np.vecdot(x, x * 2, axis=1, keepdims=True),
    "axes of vecdot": lambda x, v: np.vecdot(x, v, axes=[1, 0]),
    "axes of matvec": lambda x, v: np.matvec(x, v, axes=[(2, 1), 0, 0]),
    "axes of vecmat": lambda x, v: np.vecmat(v, x, axes=[0, (1, 2), -1]),
    "axes of matmul": lambda x, v: np.matmul(x, x, axes=[(1, 2), (2, 1), (2, 0)]),
    "dtype of matmul": lambda x, v: np.matmul(x[0], x[0].T, dtype=complex),
    "out of matvec": lambda x, v: np.matvec(x[0].T, v, out=lnp.zeros(4)),
}


@pytest.mark.parametrize("name", AXES)
def test_stacked_products_accept_numpys_keywords(name):
    f = AXES[name]

    assert_same(f(B, V), lt.trace(f, B, V)(B, V))
    check_grads(f, (B, V))


# ---- sources ----

OWN = ["solve", "det", "slogdet", "qr", "svd", "pinv", "matrix_rank", "eig", "eigvals", "eigh"]
OWN += [
    "norm",
    "condition_number",
    "lstsq",
    "matrix_power",
    "cofactors",
    "multi_dot",
    "tensordot",
    "vecdot",
]


@in_one_test
@pytest.mark.parametrize("name", OWN)
def test_the_source_of_a_derivative_runs(name):
    for sample in SAMPLES[name][:3]:
        program, args = applied_program(PRIMITIVES[name], sample)
        namespace: dict = {}
        exec(lt.to_source(program), namespace)
        found = namespace["f"](*args)
        assert_close(program(*args), tuple(found) if isinstance(found, tuple) else found)
        compile(lt.to_source(lt.differentiate(program)), "<source>", "exec")


# ---- symbolic sizes ----

SQUARE, STACKED = lt.ShapeDtype(("n", "n")), lt.ShapeDtype((2, "n", "n"))
OF_ANY_SIZE = {
    "solve": (np.linalg.solve, (STACKED, lt.ShapeDtype(("n", 3)))),
    "det": (np.linalg.det, (SQUARE,)),
    "slogdet": (lambda x: np.linalg.slogdet(x)[1], (STACKED,)),
    "cholesky": (np.linalg.cholesky, (STACKED,)),
    "qr": (lambda x: np.linalg.qr(x)[1], (SQUARE,)),
    "svd": (lambda x: np.linalg.svd(x)[0], (SQUARE,)),
    "pinv": (np.linalg.pinv, (lt.ShapeDtype(("n", 2)),)),
    "eigh": (lambda x: np.linalg.eigh(x)[1], (STACKED,)),
    "norm": (lambda x: np.linalg.norm(x, "nuc"), (SQUARE,)),
    "multi_dot": (lambda x, y: np.linalg.multi_dot([x, x, y]), (SQUARE, SQUARE)),
    "tensordot": (lambda x: np.tensordot(x, x, 1), (SQUARE,)),
    "a diagonal": (lambda x: np.einsum("ii->i", x), (SQUARE,)),
    "trace": (np.linalg.trace, (STACKED,)),
}


@in_one_test
@pytest.mark.parametrize("name", OF_ANY_SIZE)
def test_gradients_of_matrices_of_symbolic_size_agree_at_each_size(name):
    """[B10, D14]"""
    f, kinds = OF_ANY_SIZE[name]
    loss = lambda *args: np.sum(f(*args) ** 2 * 0.5)  # noqa: E731
    everything = tuple(range(len(kinds)))
    program = lt.grad(lt.trace(loss, *kinds), argnums=everything)

    for n in (3, 4):
        shapes = [[n if type(size) is not int else size for size in kind.shape] for kind in kinds]
        args = [np.cos(np.arange(np.prod(s))).reshape(s) for s in shapes]
        args = [a @ np.swapaxes(a, -1, -2) + np.eye(n) if a.shape[-1] == n else a for a in args]
        assert_close(lt.grad(loss, argnums=everything)(*args), program(*args))


def test_the_gradient_of_a_matrix_that_a_stack_is_multiplied_by_holds_no_stack_of_matrices():
    x, w = np.random.default_rng(0).normal(size=(5, 2, 3)), np.ones((3, 4))
    slope = lt.grad(lt.trace(lambda w: (np.sin(x @ w) ** 2).sum(), w))

    assert max(kind.size for bind in slope.binds for kind in [bind.binders[0].type]) == 5 * 2 * 4
    y = x @ w
    expected = np.einsum("bij,bik->jk", x, np.sin(2 * y))
    np.testing.assert_allclose(slope(w), expected, rtol=1e-13)


def test_multi_dot_of_two_arrays_takes_all_ranks():
    stack, line = np.arange(12.0).reshape(2, 2, 3), np.arange(3.0)
    program = lt.trace(lambda x, y: np.linalg.multi_dot([x, y]), stack, line)

    assert_same(stack @ (line + 1), program(stack, line + 1))
    assert lt.grad(lambda x: np.linalg.multi_dot([x, 2.0]).sum())(line).tolist() == [2.0] * 3
