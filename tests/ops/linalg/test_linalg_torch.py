"""First and second derivatives of linear algebra against PyTorch's, also where JAX has none."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

A = np.array([[2.0, 0.3, -0.5], [0.1, 1.5, 0.7], [-0.2, 0.4, -1.8]])
C = A + 1j * np.array([[0.4, -1.2, 0.3], [0.9, 0.2, -0.1], [0.2, 0.5, 1.1]])
TALL = np.array([[1.0, -0.4, 0.2], [0.3, 2.0, -0.8], [-0.7, 0.6, 1.4], [0.5, 0.1, -0.3]])
THIN, LINE = TALL + 0.3j * TALL[::-1], np.array([0.5, -1.25, 2.0])


def spectral(np, w, v):
    """A function of eigenvalues and eigenvectors that is invariant under phases."""
    return np.real(np.sum(v * np.conj(v) * w**2))


FUNCTIONS = {
    "eig": (lambda np, x: spectral(np, *np.linalg.eig(x)), (C,)),
    "eig of a real matrix": (lambda np, x: spectral(np, *np.linalg.eig(x)), (C.imag,)),
    "eigvals": (lambda np, x: np.real(np.sum(np.linalg.eigvals(x) ** 3)), (C,)),
    "wide qr": (lambda np, x: np.sum(np.linalg.qr(x)[1] ** 3), (TALL.T,)),
    "wide qr of z": (lambda np, x: np.sum(np.abs(np.linalg.qr(x)[1]) ** 3), (THIN.T,)),
    "pinv": (lambda np, x: np.sum(np.abs(np.linalg.pinv(x)) ** 3), (THIN,)),
    "lstsq": (lambda np, a, b: np.sum(np.linalg.lstsq(a, b)[0] ** 3), (TALL, TALL[:, :2] ** 2)),
    "nuclear norm": (lambda np, x: np.linalg.matrix_norm(x, ord="nuc") ** 2, (THIN,)),
    "condition": (lambda np, x: np.linalg.cond(x), (A,)),
    "slogdet": (lambda np, x: np.linalg.slogdet(x)[1] ** 2, (C,)),
    "det": (lambda np, x: np.abs(np.linalg.det(x)) ** 2, (C,)),
    "tensordot": (lambda np, x, y: np.sum(np.tensordot(x, y, 1) ** 3), (TALL, A)),
}


class TorchLinalg:
    """numpy.linalg in terms of torch.linalg."""

    def __getattr__(self, name):
        return getattr(torch.linalg, name)

    def qr(self, x, mode="reduced"):
        return torch.linalg.qr(x, mode="reduced")

    def lstsq(self, a, b):
        return (torch.linalg.pinv(a) @ b,)


class Torch:
    """NumPy's names in terms of PyTorch."""

    linalg = TorchLinalg()

    def __getattr__(self, name):
        return getattr(torch, name)


def first_and_second(name: str, side: str) -> list:
    """The gradients, and the gradients of the real part of their sum."""
    f, args = FUNCTIONS[name]
    if side == "letir":
        g = lambda *xs: lt.grad(lambda *ys: f(np, *ys), argnums=tuple(range(len(xs))))(*xs)  # noqa: E731
        total = lambda *xs: sum(np.real(np.sum(c)) for c in g(*xs))  # noqa: E731
        return [*g(*args), *lt.grad(total, argnums=tuple(range(len(args))))(*args)]
    xs = [torch.tensor(a, requires_grad=True) for a in args]
    first = torch.autograd.grad(f(Torch(), *xs), xs, create_graph=True)
    # PyTorch's gradients are the conjugates of JAX's and letir's
    second = torch.autograd.grad(sum(torch.real(torch.sum(c)) for c in first), xs)
    return [c.detach().conj().resolve_conj().numpy() for c in (*first, *second)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_agree_with_torch(name):
    assert_close(first_and_second(name, "torch"), first_and_second(name, "letir"))
