"""letir.scipy.signal: convolutions that NumPy does not have, and SciPy's errors about arguments."""

import numpy as np
import pytest
import scipy.signal

import letir as lt
import letir.scipy
from letir.testing import assert_close, assert_same

RNG = np.random.default_rng(3)
V, M = RNG.normal(size=9), RNG.normal(size=(4, 5))
WHOLE, COMPLEX = RNG.integers(-9, 9, (3, 4)), RNG.normal(size=5) + 1j * RNG.normal(size=5)
NUMBER = np.array(2.5)

# name -> (call of the namespace, arguments)
CALLS = {
    "convolve of numbers": (lambda s, a: s.convolve(a, a + 1), (NUMBER,)),
    "convolve of integers": (lambda s, a: s.convolve(a, a[:2]), (WHOLE,)),
    "fftconvolve of integers": (lambda s, a: s.fftconvolve(a, a[:2]), (WHOLE,)),
    "convolve by fft": (lambda s, a: s.convolve(a, a[:3], method="fft"), (V,)),
    "fftconvolve of complex": (lambda s, a, b: s.fftconvolve(a, b, "same"), (COMPLEX, V)),
    "fftconvolve of nothing": (lambda s, a: s.fftconvolve(a, a[:0]), (V,)),
    "oaconvolve": (lambda s, a, b: s.oaconvolve(a, b, "valid", axes=1), (M, M[:, :2])),
    "valid of the smaller one": (lambda s, a: s.convolve(a[:3], a, "valid"), (V,)),
    "correlate of complex": (lambda s, a, b: s.correlate(a, b, "valid"), (V, COMPLEX)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_replay_gives_scipys_numbers(name):
    call, args = CALLS[name]
    program = lt.trace(lambda *args: call(letir.scipy.signal, *args), *args)

    for given in (args, [arg * 2 for arg in args]):
        expected, found = call(scipy.signal, *given), program(*given)

        assert (expected.dtype, expected.shape) == (found.dtype, found.shape)
        assert_close(expected, found, rtol=1e-10, atol=1e-10)


WRONG = {
    "other ranks": (lambda s, a: s.convolve(a, M), "should have the same dimensionality"),
    "a method": (lambda s, a: s.convolve(a, a, method="quick"), "'auto', 'direct', or 'fft'"),
    "a mode": (lambda s, a: s.convolve(a, a, mode="whole"), "'valid', 'same', or 'full'"),
    "a mode of fft": (lambda s, a: s.fftconvolve(a, a, "whole"), "'valid', 'same', or 'full'"),
    "neither is larger": (lambda s, a: s.convolve(M + a[0], M.T, "valid"), "in every dimension"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_scipys_error(name):
    call, words = WRONG[name]

    for namespace in (scipy.signal, letir.scipy.signal):
        with pytest.raises(ValueError, match=words):
            lt.trace(lambda a, namespace=namespace: call(namespace, a), V)


def test_a_correlation_with_a_larger_array_is_a_call_of_scipy():
    program = lt.trace(lambda a: letir.scipy.signal.correlate(a[:3], a, "valid"), V)

    assert_same(scipy.signal.correlate(V[:3], V, "valid"), program(V))


@pytest.mark.parametrize("numbers", [(3, 1), (1.5, 2), (1 + 1j, 2.0), (np.float32(2.0), 3.0)])
def test_a_convolution_of_numbers_is_numpys_number(numbers):
    wanted = scipy.signal.convolve(*numbers)

    assert_same(wanted, lt.trace(scipy.signal.convolve, *numbers)(*numbers))
    assert_same(wanted, lt.jit(scipy.signal.convolve)(*numbers))
