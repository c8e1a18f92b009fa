"""np.einsum on traced values: every form of its arguments, and derivatives."""

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.testing import assert_same, check_grads
from tests.each_sample import in_one_test

X, Y, Z = (np.linspace(-1.0, 1.0 + i, 12) for i in range(3))
A, B, C = X[:6].reshape(2, 3), Y.reshape(3, 4), Z[:8].reshape(4, 2)
S, T = np.cos(np.arange(9.0)).reshape(3, 3), np.sin(np.arange(18.0)).reshape(2, 3, 3)
ROW, CUBE = A[:1], np.sin(np.arange(8.0)).reshape(2, 2, 2)

TEXTS = [
    ("ij,jk,kl", (A, B, C)),
    ("ij,jk,kl->li", (A, B, C)),
    ("ba", (A,)),  # implicit output, in alphabetical order
    ("ii", (S,)),
    ("ii->i", (S,)),
    ("iii", (CUBE,)),
    ("iij->j", (CUBE,)),
    ("i...->...", (T,)),
    ("...ii->...", (T,)),
    ("...ij,...jk", (T, S)),
    ("a...b,b...c", (T, S)),
    ("...,...", (A, ROW)),
    ("i j , k j -> i k", (A, ROW)),
    ("ij,kj->", (A, ROW)),
    ("ij,ij->ij", (A, ROW)),
    ("Zz,zA", (A, B)),
    (",", (2.0, A[0, 0])),
    (",i", (2.0, A[0])),
]


def agrees(f, *args):
    """Assert that ``f`` records one bind with NumPy's result, and has its derivatives."""
    program = lt.trace(f, *args)

    assert_same(f(*args), program(*args))
    check_grads(f, args)


@in_one_test
@pytest.mark.parametrize("optimize", [False, "optimal"])
@pytest.mark.parametrize(("text", "args"), TEXTS, ids=[text for text, _ in TEXTS])
def test_subscripts_may_be_text(text, args, optimize):
    agrees(lambda *xs: np.einsum(text, *xs, optimize=optimize), *args)


LISTS = [
    (A, [0, 1], B, [1, 2]),
    (A, [0, 1], B, [1, 2], [2, 0]),
    (T, [..., 0, 1], S, [1, 2]),
    (T, [..., 0, 1], S, [1, 2], [..., 2, 0]),
    (A, [30, 2], B, [2, 1]),  # 30 is a lower-case letter, which is sorted after capitals
    (S, [0, 0]),
    (S, [0, 0], [0]),
]


@pytest.mark.parametrize("parts", LISTS, ids=range(len(LISTS)))
def test_subscripts_may_be_lists(parts):
    def f(*xs):
        rest = iter(xs)
        return np.einsum(*[next(rest) if isinstance(p, np.ndarray) else p for p in parts])

    agrees(f, *[p for p in parts if isinstance(p, np.ndarray)])


@pytest.mark.parametrize("optimize", [["einsum_path", (1, 2), (0, 1)], ("greedy", 100), True])
def test_every_form_of_optimize_is_recorded(optimize):
    f = lambda *xs: np.einsum("ij,jk,kl", *xs, optimize=optimize)  # noqa: E731

    agrees(f, A, B, C)
    assert lt.trace(f, A, B, C) == lt.parse(lt.dumps(lt.trace(f, A, B, C)))


@pytest.mark.parametrize(
    "keywords",
    [{"dtype": complex}, {"dtype": np.float32, "casting": "same_kind"}, {"order": "F"}],
    ids=str,
)
def test_other_keywords_are_accepted(keywords):
    agrees(lambda x, y: np.einsum("ij,jk", x, y, **keywords), A, B)


def test_a_dtype_that_loses_precision_is_refused_as_in_numpy():
    with pytest.raises(TypeError, match="safe"):
        lt.trace(lambda x: np.einsum("ij->j", x, dtype=np.float32), A)


def test_the_result_is_written_into_out():
    def f(x, y):
        out = lnp.zeros((2, 4))
        np.einsum("ij,jk->ik", x, y, out=out)
        return out * 1

    assert_same(f(A, B), lt.trace(f, A, B)(A, B))


def test_einsum_path_is_computed_from_shapes():
    paths = []
    lt.trace(lambda x, y: paths.append(np.einsum_path("ij,jk,kl", x, y, C)) or x, A, B)

    assert np.einsum_path("ij,jk,kl", A, B, C) == paths[0]


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("ij,jk", (A, C)),
        ("ij->k", (A,)),
        ("i->ii", (A[0],)),
        ("ij", (A[0],)),
        ("i..j", (A,)),
        ("...ij,...jk->ik", (T, S)),
        ("ii", (A,)),
        ("i,i->", (A[0],)),
    ],
)
def test_a_call_that_numpy_refuses_is_refused_before_it_is_computed(text, args):
    with pytest.raises(ValueError):
        np.einsum(text, *args)
    with pytest.raises(lt.ShapeError, match="einsum"):
        lt.trace(lambda *xs: np.einsum(text, *xs), *map(np.asarray, args))
