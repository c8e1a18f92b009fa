"""Generated programs: right, or a named error; never another number [B2].

``make fuzz`` draws other seeds.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import letir as lt
from letir.errors import GuardError, TraceError
from tests.programs.generated import arguments, program, source_of

pytestmark = pytest.mark.filterwarnings("ignore")  # divisions by zero

SEEDS = st.integers(0, 10**6)


def outcome(f, args):
    """(results, the class of the error) of a call on copies of the arguments."""
    try:
        return f(*[x.copy() if isinstance(x, np.ndarray) else x for x in args]), None
    except Exception as error:
        return None, type(error)


def assert_alike(expected, found, source: str):
    for a, b in zip(expected, found, strict=True):
        assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype, source
        if isinstance(a, np.ndarray):
            assert a.flags.c_contiguous == b.flags.c_contiguous, source
            assert a.flags.f_contiguous == b.flags.f_contiguous, source
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12, err_msg=source)


@given(SEEDS)
@settings(max_examples=80)
def test_a_replay_gives_the_results_of_the_function_or_a_guard_error(seed):
    f, first, second = program(seed), arguments(seed), arguments(seed + 1)
    expected, error = outcome(f, first)
    if error is not None:
        with pytest.raises((error, lt.LetirError)):
            lt.trace(f, *first)
        return

    recorded = lt.trace(f, *first)

    assert_alike(expected, recorded(*first), source_of(seed))
    expected, error = outcome(f, second)
    found, other = outcome(recorded, second)
    if other is not None:
        assert other is error or other is GuardError, source_of(seed)
    elif error is None:
        assert_alike(expected, found, source_of(seed))


@given(SEEDS)
@settings(max_examples=80)
def test_a_jitted_function_gives_the_results_of_the_function(seed):
    f, jitted = program(seed), lt.jit(program(seed))
    for args in (arguments(seed), arguments(seed + 1), arguments(seed)):
        expected, error = outcome(f, args)
        found, other = outcome(jitted, args)

        if error is None:
            assert other is None, f"{other}\n{source_of(seed)}"
            assert_alike(expected, found, source_of(seed))


@given(SEEDS)
@settings(max_examples=40)
def test_a_gradient_agrees_with_differences(seed):
    f, args = program(seed), arguments(seed)

    def loss(x):
        vector, number, *_ = f(x, *args[1:])
        return np.tanh(vector).sum() + np.tanh(number) * 0.5

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results, error = outcome(f, args)
    if error is not None or not np.isfinite(np.hstack([np.ravel(r) for r in results[:2]])).all():
        return  # the derivative at an infinite result is nan, as of a division by 0
    if any("divide by zero" in str(warning.message) for warning in caught):
        return  # so is the derivative of atan(x / 0.0), whose result is finite
    size = 1e-3 if "float32" in source_of(seed) else 1e-6  # its rounding is divided by this
    steps = [(loss(args[0] + h) - loss(args[0] - h)) / (2 * size) for h in size * np.eye(3)]
    sides = [(loss(args[0] + h) - loss(args[0])) / size for h in size * np.eye(3)]
    if not np.allclose(steps, sides, rtol=1e-2, atol=1e-3):  # at a kink or a jump
        return

    try:
        found = lt.grad(loss)(args[0])
    except TraceError as refused:  # which a method of a ufunc made
        assert "cannot be written into an ordinary array" in str(refused), source_of(seed)
        return
    if np.isnan(found).any():  # an infinite slope times 0 in reverse mode, as of sqrt(0 * x)
        found = [lt.jvp(loss, (args[0],), (e,))[1] for e in np.eye(3)]
    np.testing.assert_allclose(found, steps, rtol=1e-3, atol=1e-4)
