"""Laws of NumPy functions, on generated ones (``letir.testing.functions()``).

A law is a function of a program and its arguments. Each runs on few programs here and on 10,000 in
the slow test.
"""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings

import letir as lt
from letir.ast.bodies import bodies_of
from letir.ast.text.parser import parse
from letir.errors import DTypeError
from letir.testing import assert_close, assert_same, check_grads, functions
from tests.rounding_noise import assert_within_rounding

QUICK = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(QUICK, max_examples=10_000)
ANY = functions()
SMOOTH = functions(smooth=True)


def others_like(args: list) -> list:
    """Other arguments of the same types."""
    return [np.asarray(np.roll(arg, 1) if arg.ndim else arg + arg) for arg in args]


def away_from_ties(args: list) -> list:
    """Arguments without two equal elements, within one or across arguments."""
    steps = [0.003 * (i + 1) + 0.0107 * np.arange(a.size) for i, a in enumerate(args)]
    return [np.asarray(a + s.reshape(a.shape)) for a, s in zip(args, steps, strict=True)]


def copies(args: list) -> list:
    """Copies of the arguments, which the function may change."""
    return [arg.copy() for arg in args]


def result_of(f, args: list):
    """The result of plain NumPy on copies of the arguments; None if it refuses them."""
    try:
        return f(*copies(args))
    except (ArithmeticError, IndexError, ValueError):
        return None
    except TypeError:  # a loop that runs here gives a NumPy scalar, which takes no writes
        return None
    except UnboundLocalError:  # only a branch not taken here assigns the name
        return None


def traced(f, args: list) -> lt.Lambda:
    """``f`` traced with copies of the arguments."""
    return lt.trace(f, *copies(args))


def is_rounded_otherwise(bind) -> bool:
    """Whether NumPy rounds the operation differently for scalars than for arrays [B11]."""
    aval, kinds = bind.binders[0].type if bind.binders else None, {"mul": "c", "power": "fc"}
    return bind.op.name in kinds and aval.shape == () and aval.dtype.kind in kinds[bind.op.name]


def has_scalars_rounded_otherwise(fn: lt.Lambda) -> bool:
    """Whether a bind of the program ``is_rounded_otherwise``, also in bodies."""
    return any(
        is_rounded_otherwise(bind) or any(map(has_scalars_rounded_otherwise, bodies_of(bind)))
        for bind in fn.binds
    )


def assert_same_but_for_scalars(fn, args, expected, found) -> None:
    """Raise AssertionError unless results are NumPy's, except for the rounding of scalars."""
    if has_scalars_rounded_otherwise(fn):
        with np.errstate(all="ignore"):
            assert_within_rounding(fn, copies(args), expected, found)
    else:
        assert_same(expected, found)


# ---- laws ----


def a_replay_gives_what_numpy_gives(f, args):
    fn = lt.check(traced(f, args))

    assert_same_but_for_scalars(fn, args, result_of(f, args), fn(*copies(args)))


def a_replay_at_other_arguments_gives_what_numpy_gives_or_a_guard_fails(f, args):
    fn, others = traced(f, args), others_like(args)
    expected = result_of(f, others)
    if expected is None:
        return
    try:
        found = fn(*copies(others))
    except lt.GuardError:
        event("a guard fails")
        return

    assert_same_but_for_scalars(fn, others, expected, found)


def a_replay_changes_arguments_as_numpy_does(f, args):
    plain, replayed = copies(args), copies(args)
    f(*plain)
    traced(f, args)(*replayed)

    assert_same(plain, replayed)


def text_brings_the_program_back(f, args):
    fn = traced(f, args)

    assert fn == parse(lt.dumps(fn))


def real_results(f):
    """``f`` without the results that have no derivative."""
    return lambda *args: tuple(out for out in f(*args) if np.result_type(out).kind == "f")


def gradients_agree_with_differences(f, args):
    args = away_from_ties(args)
    if result_of(f, args) is None:
        return
    fn = traced(real_results(f), args)
    try:
        check_grads(fn, args, order=1)
    except lt.GuardError:
        event("a guard fails beside the point")


def a_batch_of_two_is_two_calls(f, args):
    if result_of(f, args) is None:
        return
    fn = traced(real_results(f), args)
    if any(bind.op.name.startswith("guard") for bind in fn.binds):
        event("a guard decides")
        return
    examples = [args, others_like(args)]
    stacked = [np.stack(both) for both in zip(*examples, strict=True)]
    found = lt.vmap(fn)(*stacked)
    for i, example in enumerate(examples):
        for ours, theirs in zip(found, fn(*copies(example)), strict=True):
            assert_close(np.asarray(theirs), np.asarray(ours)[i])


OF_ANY = (
    a_replay_gives_what_numpy_gives,
    a_replay_at_other_arguments_gives_what_numpy_gives_or_a_guard_fails,
    a_replay_changes_arguments_as_numpy_does,
    text_brings_the_program_back,
)
OF_SMOOTH = (gradients_agree_with_differences, a_batch_of_two_is_two_calls)
BOTH = [pytest.param(OF_ANY, ANY, id="any"), pytest.param(OF_SMOOTH, SMOOTH, id="smooth")]
of_both = pytest.mark.parametrize(("laws", "strategy"), BOTH)


def hold(laws, strategy, how: settings) -> None:
    """Check laws on generated functions, which are made once for all laws."""

    @how
    @given(strategy)
    def run(program):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other arguments than the drawn ones may warn
            for law in laws:
                hold_for(law, program)

    run()


def hold_for(law, program) -> None:
    """Check a law on one function."""
    try:
        law(*program)
    except Exception as error:
        # NumPy drops imaginary parts with a warning (not of empty writes); letir refuses
        if type(error) is DTypeError and "the imaginary part would be lost" in str(error):
            event("an imaginary part would be lost")
        else:
            error.add_note(f"the law {law.__name__} does not hold")
            raise


@pytest.mark.hypothesis
@of_both
def test_laws_hold_for_some_functions(laws, strategy):
    hold(laws, strategy, QUICK)


@pytest.mark.slow
@of_both
def test_laws_hold_for_ten_thousand_functions(laws, strategy):
    hold(laws, strategy, MANY)
