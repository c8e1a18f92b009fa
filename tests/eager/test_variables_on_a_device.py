"""Variables of CuPy arrays, where a device is present."""

import warnings

import numpy as np
import pytest

from letir import Variable
from letir.eager import gradients, history, no_grad

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # importing cupy warns of a missing CUDA installation
        import cupy
    REASON = None if cupy.cuda.is_available() else "no CUDA device is present"
except ImportError:
    REASON = "CuPy is not installed"

pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
X = np.linspace(-1.0, 2.0, 6).reshape(2, 3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.tanh(x @ x.T + 1.0).sum(),
        lambda x: (x / x.sum(axis=1, keepdims=True)).max(axis=0).mean(),
        lambda x: (x[:, 1:] ** 2 * 3.0 - x[0, 0]).sum(),
    ],
)
def test_values_and_gradients_agree_between_device_and_host(function):
    host, device = Variable(X, True), Variable(cupy.asarray(X), True)
    for x in (host, device):
        function(x).backward()

    assert isinstance(device.grad.data, cupy.ndarray)
    np.testing.assert_allclose(host.grad.data, device.grad.data.get(), rtol=1e-12)


def test_second_derivatives_histories_and_in_place_changes_work_on_the_device():
    x = Variable(cupy.asarray(X), True)
    dx = gradients((x**3).sum(), x, create_graph=True)
    ddx = gradients(dx.sum(), x)
    program = history(x * 2.0)
    with no_grad():
        x -= 1.0

    np.testing.assert_allclose(6 * X, ddx.data.get())
    np.testing.assert_allclose(2 * X, program(cupy.asarray(X)).get())
    np.testing.assert_allclose(X - 1.0, x.data.get())
