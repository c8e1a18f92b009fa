"""Derivatives compared with JAX and HIPS autograd, on functions written once for all three.

The value, vjp and jvp are compared, and the gradient of a pairing of the vjp, which is a second
derivative. ``DIFFERS`` lists where the peers have other conventions, or a wrong derivative, at
points without one (docs/semantics.md, D13), ``FORWARD_DIFFERS`` where only their jvp has; ``LACKS``
what a peer cannot do.
"""

import importlib
from functools import partial

import numpy
import pytest

import letir as lt
from letir.testing import assert_close
from tests.peers.peer_arranging import ARRANGING
from tests.peers.peer_elementwise import LESS_FREQUENT
from tests.peers.peer_functions import CORNERS, FUNCTIONS
from tests.peers.peer_linalg import FIRST_ORDER, LINALG
from tests.peers.peer_selecting import SELECTING
from tests.peers.peer_statistics import STATISTICS, STATISTICS_CORNERS

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

# ---- the three libraries ----


def direction(array, seed: int):
    """Numbers of the shape and dtype of an array."""
    rng, shape = numpy.random.default_rng(seed), numpy.shape(array)
    real = rng.uniform(-1, 1, shape)
    found = real + 1j * rng.uniform(-1, 1, shape) if numpy.iscomplexobj(array) else real
    return found.astype(numpy.asarray(array).dtype)[()]


def paired(np, vectors, cotangents):
    """The real pairing of two tuples of arrays."""
    return sum(np.real(np.sum(v * c)) for v, c in zip(vectors, cotangents, strict=True))


class Letir:
    """letir on NumPy."""

    np = numpy

    def vjp(self, f, args, ct) -> tuple:
        return lt.vjp(partial(f, numpy), *args)[1](ct)

    def jvp(self, f, args, tangents):
        return lt.jvp(partial(f, numpy), args, tangents)[1]

    def grad(self, scalar, args) -> tuple:
        return lt.grad(scalar, argnums=tuple(range(len(args))))(*args)


class Jax:
    """JAX in double precision."""

    def __init__(self):
        self.jax = pytest.importorskip("jax", reason="JAX is not installed")
        self.jax.config.update("jax_enable_x64", True)
        self.np = importlib.import_module("jax.numpy")

    def vjp(self, f, args, ct) -> tuple:
        return self.jax.vjp(partial(f, self.np), *args)[1](self.np.asarray(ct))

    def jvp(self, f, args, tangents):
        return self.jax.jvp(partial(f, self.np), args, tangents)[1]

    def grad(self, scalar, args) -> tuple:
        return self.jax.grad(scalar, argnums=tuple(range(len(args))))(*args)


class Autograd:
    """HIPS autograd, whose forward mode lacks many functions and is not used."""

    def __init__(self):
        self.autograd = pytest.importorskip("autograd", reason="autograd is not installed")
        self.np = importlib.import_module("autograd.numpy")

    def vjp(self, f, args, ct) -> tuple:
        f = partial(f, self.np)
        return tuple(self.autograd.make_vjp(f, i)(*args)[0](ct) for i in range(len(args)))

    def grad(self, scalar, args) -> tuple:
        return tuple(self.autograd.grad(scalar, i)(*args) for i in range(len(args)))


# ---- the laws ----

SMOOTH = [name for name in FUNCTIONS if name not in CORNERS and name not in FIRST_ORDER]
NO_RULE = "autograd has no derivative of it"
EINSUM = "autograd writes a repeated label into a result, which NumPy refuses"
DIFFERS = {
    ("jax", "abs at 0"): "JAX takes the side of positive numbers, letir 0",
    ("jax", "clip at its bounds"): "JAX shares ties with the bounds, letir keeps 1",
    ("jax", "hypot at 0"): "JAX gives a half to each, letir 0",
    ("jax", "0 to the power of 0"): "JAX gives nan by the base, letir 0",
    ("jax", "std of equals"): "JAX gives nan, letir 0",
    ("jax", "quantile at an element, by q"): "JAX gives 0, letir the slope to the right",
    ("jax", "vander of zeros"): "JAX gives nan, letir the derivatives of the powers",
    ("autograd", "clip at its bounds"): "autograd gives 0 at the bounds, letir 1",
    ("autograd", "hypot at 0"): "autograd gives nan, letir 0",
    ("autograd", "root of 0"): "autograd loses the sign of -0.0",
    ("autograd", "prod of two zeros"): "autograd divides by the zeros and gives nan",
    ("autograd", "prod with a zero"): "autograd divides by the zero and gives nan",
    ("autograd", "where of a row"): "autograd does not sum the gradient back to the row",
}
FORWARD_DIFFERS = {
    "norm at 0": "the tangent of the sum is 0: letir keeps it, JAX multiplies it by infinity",
}
LACKS = {
    **{("autograd", name): "compared with JAX, which has them all" for name in ARRANGING},
    **{("autograd", name): "compared with JAX, which has them all" for name in LINALG},
    **{
        ("autograd", name): "compared with JAX, which has them all"
        for name in (*STATISTICS, *STATISTICS_CORNERS, *SELECTING)
    },
    **{("autograd", name): "compared with JAX, which has nearly all" for name in LESS_FREQUENT},
    **{("autograd", name): NO_RULE for name in ("positive", "cbrt", "flip", "copy")},
    **{("autograd", name): EINSUM for name in ("trace", "diagonal")},
    ("autograd", "broadcast_to"): "autograd does not broadcast to further leading axes",
}


@pytest.fixture(scope="module", params=[Jax, Autograd], ids=["jax", "autograd"])
def peer(request):
    """JAX or autograd."""
    return request.param()


def case_of(name: str, peer) -> tuple:
    """(function, arguments, a cotangent, tangents) of one entry."""
    for table in (DIFFERS, LACKS):
        reason = table.get((type(peer).__name__.lower(), name))
        if reason is not None:
            pytest.skip(reason)
    f, args = FUNCTIONS[name]
    out = f(numpy, *args)
    return f, args, direction(out, 1), tuple(direction(arg, 2 + i) for i, arg in enumerate(args))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_vjps_agree_with_the_peers(name, peer):
    f, args, ct, _ = case_of(name, peer)

    assert_close(f(peer.np, *args), f(numpy, *args))
    assert_close(peer.vjp(f, args, ct), Letir().vjp(f, args, ct))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jvps_agree_with_jax(name):
    if name in FORWARD_DIFFERS:
        pytest.skip(FORWARD_DIFFERS[name])
    jax = Jax()
    f, args, _, tangents = case_of(name, jax)

    assert_close(jax.jvp(f, args, tangents), Letir().jvp(f, args, tangents))


@pytest.mark.parametrize("name", SMOOTH)
def test_second_derivatives_agree_with_the_peers(name, peer):
    f, args, ct, vectors = case_of(name, peer)

    def second(side):
        def scalar(*xs):
            return paired(side.np, vectors, side.vjp(f, xs, ct))

        return side.grad(scalar, args)

    assert_close(second(peer), second(Letir()))


def test_there_are_enough_functions():
    assert len(FUNCTIONS) >= 150
