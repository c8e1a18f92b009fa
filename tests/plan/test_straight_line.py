"""The function that a plan becomes when it runs often: all as by the steps of the plan."""

import gc
import inspect
import tracemalloc
import warnings
import weakref
from types import FunctionType

import numpy as np
import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings

import letir as lt
from letir.eval.evaluator import run_flat
from letir.plan import reused_operands
from letir.plan.plan import RUNS_BY_STEPS, Plan, plan_of
from letir.plan.straight_line import straight_line_of
from letir.testing import applied_program, assert_same
from letir.testing.strategies import programs
from tests.each_sample import each_sample, in_one_test
from tests.plan.test_plan import owner

X = np.linspace(-1.0, 2.0, 6).reshape(2, 3)


def straightened(fn) -> Plan:
    """The plan of ``fn`` as it is after many runs."""
    plan = plan_of(fn)
    plan.straight = straight_line_of(plan)
    return plan


@in_one_test
@pytest.mark.parametrize("numbers", [(1.5, -2.0), (np.nan, 1.0), (-0.0, 0.0), (0.0, -0.0), (3, 4)])
@pytest.mark.parametrize(
    "call", ["power(%0, 2)", "power(%0, 3)", "maximum(%0, %1)", "minimum(%0, %1)", "maximum(%0, 2)"]
)
def test_functions_of_python_numbers_in_a_text(call, numbers):
    kind = "int64*[]" if type(numbers[0]) is int else "float64*[]"
    program = lt.parse(
        f"lambda %0: {kind}, %1: {kind} {{ %2 = {call}; %3: {kind} = weaken(%2); "
        f"%4 = math_function(%3, name='fabs'); return (%3, %4) }}"
    )
    with np.errstate(all="ignore"):
        assert_same(run_flat(program, [*numbers]), straightened(program).run([*numbers]))


def test_an_error_at_an_instruction_without_a_line_belongs_to_no_step():
    """An interrupt may come at an instruction that Python inserts."""
    straight = straightened(lt.trace(lambda x: np.exp(x) / 2, X)).straight
    code = straight.code.replace(co_linetable=b"")
    run = FunctionType(code, straight.run.__globals__, None, straight.run.__defaults__)
    with pytest.raises(TypeError) as caught:
        run([None])

    assert straight.failed_at(caught.value)[0] >= 0 or caught.tb.tb_next.tb_lineno is None
    assert evolve(straight, run=run, code=code).failed_at(caught.value) == (-1, False, None)


def check_function(fn, args) -> None:
    """Assert that the function agrees with run_forward in values, kinds and sharing of memory."""
    args = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
    expected, found = run_flat(fn, list(args)), straightened(fn).run(list(args))
    assert len(expected) == len(found)
    for a, b in zip(expected, found, strict=True):
        assert type(a) is type(b)
        if a is not lt.Undef:
            assert_same(a, b)
            assert getattr(a, "strides", None) == getattr(b, "strides", None)
    assert [owner(expected, args, a) for a in expected] == [owner(found, args, b) for b in found]


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@each_sample(in_one_test=True)
def test_every_operation_agrees_with_run_forward(op, sample):
    for constants in (False, True):
        check_function(*applied_program(op, sample, constants=constants))


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@given(programs())
def test_programs_agree_with_run_forward(program):
    check_function(*program)


@pytest.fixture
def reuse_of_all(monkeypatch):
    """Results are written into operands however small these are."""
    monkeypatch.setattr(reused_operands, "_MIN_REUSED", 0)


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@given(programs())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_programs_that_reuse_operands_agree(reuse_of_all, program):
    check_function(*program)


def reused(x, y):
    a = np.exp(x) + y
    b = a * 2.0 - y
    part = b[:1]
    c = np.sin(b) * np.cos(b)
    d = c.T + 1.0
    e = (d * d).T / np.sqrt(y + 3.0)
    kept = e + 1.0
    return a, part, np.tanh(-kept), kept > 0.0, (e + c) * part[0], (x * 1.0).astype(int) * 2


LAYOUTS = [X, X.T, X[:, ::-1], X[::2], np.asfortranarray(X), np.ones((3, 1)), np.ones((1, 1))]


@in_one_test
@pytest.mark.parametrize("y", [X, X.T.copy().T, X[0], X[:, :1], 2.0, np.float64(2.0)])
@pytest.mark.parametrize("x", LAYOUTS, ids=str)
def test_results_in_operands_have_numpys_order(reuse_of_all, x, y):
    if np.shape(y) and x.shape != (2, 3):
        y = np.ones(x.shape)
    fn = lt.trace(reused, x, y)
    check_function(fn, (x, y))
    expected, found = run_flat(fn, [x, y]), straightened(fn).run([x, y])

    for a, b in zip(expected, found, strict=True):
        assert a.strides == b.strides


@pytest.mark.parametrize("f", [np.maximum, np.minimum])
def test_results_of_maximum_are_written_into_operands_without_a_warning(reuse_of_all, f):
    """NumPy deprecates a third operand of them that is not given by name."""
    fn = lt.trace(lambda x, y: f(x + 1.0, y) * 2.0, X, X)

    check_function(fn, (X, 0.5 - X))


def test_an_operand_that_something_refers_to_is_not_reused(reuse_of_all):
    kept = []

    def keep(x):
        kept.append(x)
        return x + 1.0

    keep = lt.opaque(keep, lambda x: x, name="tests.keeps_its_operand")
    fn = lt.trace(lambda x: keep(x * 2.0) * 3.0, lt.ShapeDtype((2, 3)))
    straightened(fn).run([X])

    assert_same(X * 2.0, kept[-1])


def test_a_large_result_takes_the_memory_of_a_dying_operand():
    x = np.linspace(0.0, 1.0, 100_000)
    plan = straightened(lt.trace(lambda x: np.sin(np.exp(x) + 1.0) * 2.0 - 1.0, x))
    plan.run([x])
    tracemalloc.start()
    try:
        plan.run([x])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 1.1 * x.nbytes


def test_a_plan_becomes_a_function_when_it_has_run_often():
    plan = plan_of(lt.trace(lambda x: np.exp(x) * 2.0, X))
    made = []
    for _ in range(RUNS_BY_STEPS + 1):
        plan.run([X])
        made.append(plan.straight is not None)

    assert [False] * (RUNS_BY_STEPS - 1) + [True] * 2 == made


SCALARS = [
    (lambda x: (x[0] * x[1] + x[2], x[0] - 2 * x[1], x[0] / x[1]), X[0]),
    (lambda x: (x[0] * x[1] + x[2], x[0] - 2 * x[1], x[0] / x[1], -x[0]), np.arange(1, 4)),
    (lambda x: (x[0] < x[1], x[1] == 0.5, x[0] >= x[1], x[0] != 2), X[0]),
    (lambda x: (x[0] * x[1], x[0] / 3, x[0] - 1e300), X[0].astype(np.float32)),
    (lambda x: (x[0] + x[1], x[0] * 2), np.arange(100, 103, dtype=np.int8)),
    (lambda x: (x * x + 0.5, -x, x / 3, 2 - x, x**2), 1.7),
    (lambda x: (x * x + 5, x - 2 * x, abs(-x), x // 2, x % 2, x / 2, 7.5 // x), 3),
    (lambda x: (abs(x), np.sqrt(x * x), np.minimum(x, 0.5), x % 0.4, x // 0.3, 3 // x), -1.3),
    (lambda x: (x < 0, x == 1, x >= 1.5, x != 0, x < np.inf), 1.5),
    (lambda x: (np.minimum(x[0], x[1]), np.maximum(x[0], x[1]), np.maximum(x[0], x[0])), X[0]),
    (lambda x: (np.minimum(x[0], x[1]), np.maximum(x[1], x[0])), np.array([0.0, -0.0])),
    (lambda x: (np.minimum(x[0], x[1]), np.maximum(x[1], x[0])), np.array([np.nan, 1.0])),
    (lambda x: np.minimum(np.where(x > 0, x, 1.0), x[0]), np.array([1.0, 0.0])),
    (lambda x: np.stack([x[0], x[1] * 2, x[2]]), X[0]),
    (lambda x: (np.array([x * 2, 1, x]), np.array([[x, 0.5], [2, x * x]])), 1.5),
    (lambda x: (np.array([x * 2, 1, x]), np.array([x, 0.5])), 3),
    (lambda x: (x.sum(), x.mean(0), x.max(1), x.argmax(), x.sum(1, keepdims=True), x.mean()), X),
    (lambda x: (x.var(), x.var(1, ddof=1), np.std(x, 0, keepdims=True), x.T.std((0, 1))), X),
    (lambda x: (np.linalg.norm(x), np.linalg.norm(x.T[:2]), np.linalg.norm(x[:, ::-2], axis=1)), X),
    (lambda x: (np.linalg.norm(x[1, ::-1]), x.var(0) * 2.0, x[0].std() * 2.0), X),
    (lambda x: (x.T.reshape(-1), x.T.copy(), x[None, ..., 1:], x.astype(int), x @ x.T), X),
]


@in_one_test
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize(("f", "x"), SCALARS)
def test_scalars_and_numbers_keep_their_bits_and_kinds(f, x):
    check_function(lt.trace(f, x), (x,))


def stored(x):
    y = np.zeros((3, 3))
    for i in range(3):
        y[i, 1] = x[i]
    kept = y.copy()
    part = y[1]
    y[1] = 2.0 * part
    y[:, 2] = y[:, 1]
    return y, kept, part


@pytest.mark.parametrize("n", [7, -7, 2**40, 2**62, -(2**63)])
def test_operators_of_bits_are_pythons(n):
    def mix(n):
        return ((n & 255) << 3) ^ (n >> 2) | ~n

    straight = straightened(lt.trace(mix, 5))

    assert not any(
        isinstance(value, np.ufunc) for value in straight.straight.run.__globals__.values()
    )
    assert_same((mix(n),), tuple(straight.run([n])))


def test_stores_do_not_change_what_was_read():
    check_function(lt.trace(stored, X[0]), (X[0],))


def test_an_argument_is_never_written_to():
    fn = lt.trace(lambda x: lt.numpy.array(x).at[0].set(1.0), np.zeros(3))
    x = np.zeros(3)
    straightened(fn).run([x])

    assert_same(np.zeros(3), x)


def places_of_warnings(fn, args, make=straightened) -> list:
    """(text, file, line) of each warning of a run."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(fn).run(list(args))
    return [(str(w.message), w.filename, w.lineno) for w in caught]


WARNING = [
    (lambda x: np.log(x - 1.0) * 2.0, X),
    (lambda x: x[0] / x[1], np.array([1.0, 0.0])),
    (lambda x: x[0] * 1e200 * 1e200, np.array([1.0, 0.0])),
    (lambda x: np.var(x) + x[0] * 1e200 * 1e200, np.array([1.0, 0.0])),
    (lambda x: x * 1e200 * 1e200, 1.5),
    (lambda x: np.sum(x * 1e308), np.array([1.0, 1.0])),
    (lambda x: x[0] * x[1], np.array([2**62, 4])),
    (lambda x: (np.exp(x) * 1e300 - 1.0) * 1e300 * 0.0, np.ones(5000)),
]


@pytest.mark.parametrize(("f", "x"), WARNING)
def test_warnings_equal_the_steps_warnings(f, x):
    with np.errstate(all="ignore"):
        fn = lt.trace(f, np.zeros_like(x) if isinstance(x, np.ndarray) else 1.0)
    expected = places_of_warnings(fn, (x,), plan_of)

    for _ in range(12):  # after some, the function sets the state in which NumPy warns
        assert expected == places_of_warnings(fn, (x,), plan_of)
    assert plan_of(fn).straight is not None


@pytest.mark.parametrize(("f", "x"), WARNING)
def test_errors_of_errstate_equal_the_steps_errors(f, x):
    with np.errstate(all="ignore"):
        fn = lt.trace(f, np.ones_like(x) if isinstance(x, np.ndarray) else 1.0)
    told = []
    for make in (plan_of, straightened):
        try:
            with np.errstate(all="raise"):
                told.append([str(r) for r in make(fn).run([x])])
        except FloatingPointError as error:
            told.append([str(error), *error.__notes__])

    assert told[0] == told[1]


def test_an_integer_beyond_64_bits_is_the_error_of_the_steps():
    fn = lt.trace(lambda x: x * 2**62, 1)
    told = []
    for make in (plan_of, straightened):
        with pytest.raises(OverflowError) as caught:
            make(fn).run([3])
        told.append([str(caught.value), *caught.value.__notes__])

    assert told[0] == told[1]


def test_a_failed_guard_raises_with_its_line():
    fn = lt.trace(lambda x: x * 2.0 if x.sum() > 0 else x, X)
    plan = straightened(fn)

    with pytest.raises(lt.GuardError, match=r"(?s)True.*test_straight_line\.py:\d+"):
        plan.run([-X])
    with pytest.raises(lt.GuardError):
        plan.run([-X], tries=True)


class Broken(Exception):
    pass


def test_an_error_in_the_middle_names_the_bind_and_keeps_no_values():
    def fail(x):
        raise Broken

    f = lt.opaque(fail, lambda x: x, name="tests.fails_in_straight_line")
    plan = straightened(lt.trace(lambda x: f(x * 2.0) + x, lt.ShapeDtype((2, 3))))
    x = X.copy()
    gone = weakref.ref(x)
    with pytest.raises(Broken) as caught:
        plan.run([x])
    del x
    gc.collect()

    assert "fails_in_straight_line" in "".join(caught.value.__notes__)
    assert gone() is None


def test_a_plan_is_freed_with_its_function():
    plan = Plan(lt.trace(lambda x: np.exp(x) * 2.0, X))
    plan.straight = straight_line_of(plan)
    plan.run([X])
    gone = weakref.ref(plan), weakref.ref(plan.straight.run)
    gc.disable()
    del plan
    found = [ref() for ref in gone]
    gc.enable()

    assert found == [None, None]


def test_values_are_freed_at_their_last_use():
    seen = []

    def look(x):
        gc.collect()
        seen.append([ref() is None for ref in refs])
        return x

    refs = []

    def keep(x):
        refs.append(weakref.ref(x))
        return x + 1.0

    keep = lt.opaque(keep, lambda x: x, name="tests.keeps_a_reference")
    look = lt.opaque(look, lambda x: x, name="tests.looks_at_references")
    fn = lt.trace(lambda x: look(keep(x * 2.0) * 3.0), lt.ShapeDtype((2, 3)))
    straightened(fn).run([X])

    assert seen == [[True]]


class _CountedTwice(Plan):
    """A plan whose runs another thread counts right after each count of this one."""

    counted = 0

    @property
    def runs(self):
        return self.counted

    @runs.setter
    def runs(self, value):
        self.counted = value + (value > 0)


def test_a_plan_becomes_a_function_though_other_threads_count_its_runs():
    plan = _CountedTwice(lt.trace(lambda x: np.exp(x) / 2, X))
    for _ in range(RUNS_BY_STEPS):
        plan.run([X])

    assert plan.straight is not None


def test_runs_that_are_left_to_the_steps_too_often_change_the_function():
    fn = lt.trace(lambda x: x * 1e200 * 1e200 - x, 1e-200)
    plan = straightened(fn)
    first = plan.straight
    for _ in range(20):
        with np.errstate(all="ignore"):
            assert plan.run([1.5]) == (np.inf,)

    assert plan.straight is not first
    assert plan.left < 20


METHODS = {
    "any": lambda x: (x > 0).any(axis=1),
    "cumsum": lambda x: x.cumsum(axis=1),
    "argsort": np.argsort,
    "round": lambda x: np.round(x, 1),
    "repeat": lambda x: np.repeat(x, 2, axis=0),
    "searchsorted": lambda x: np.searchsorted(x[0], x[1]),
    "outer": lambda x: np.outer(x[0], x[1]),
    "diff": np.diff,
    "interp": lambda x: np.interp(x[0], x[1], x[0]),
    "unique": np.unique,
}


@pytest.mark.parametrize("name", METHODS)
def test_functions_without_floating_point_errors_set_no_state(name):
    fn = lt.trace(METHODS[name], X)

    check_function(fn, (X,))
    assert not straightened(fn).straight.is_loud


@pytest.mark.parametrize("values", [(1, 2), (np.inf, -1j), (complex(-0.0, np.nan), 1e300), (2j, 0)])
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_complex_scalars_are_computed_as_by_ufuncs(values):
    x = np.array(values, complex)

    check_function(lt.trace(lambda x: (x[0] + x[1], x[0] - 1.5, x[1] / x[0], x[0] * x[1]), x), (x,))


def complex_matrix(x):
    """Python multiplies and divides the complex numbers of ``1j * x[0]``."""
    factor = 1j * x[0] / 1.5
    return np.array([[x[1], factor], [2.0 * factor, factor * factor]])


@pytest.mark.parametrize("value", [0.5, -0.0, 1e300, np.inf, np.nan])
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_pythons_complex_numbers_are_operands_of_its_operators(value):
    x = np.array([value, -0.0])
    plan = straightened(lt.trace(complex_matrix, np.ones(2)))

    assert_same(complex_matrix(x), plan.run([x])[0])
    # the implementations of operations are bound to an array module
    assert not any(map(inspect.ismethod, plan.straight.run.__globals__.values()))


KNOWN = [1, -2.5, 1j, 3j, complex(-0.0, -1.0), 1 + 0j]  # 0.6 - 0.8j has two rounded terms


@pytest.mark.parametrize(
    "value", [0.3 - 0.7j, complex(-0.0, np.inf), complex(np.nan, 2.0), -0.0j, 1e-160 + 3e300j]
)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_products_with_known_parts_of_zero_need_no_ufunc(value):
    x = np.array([value, 0.25])
    fn = lt.trace(lambda x: [c * x[n] * c for c in KNOWN for n in range(2)], x)
    other = lt.trace(lambda x: x[0] * (0.6 - 0.8j), x)

    check_function(fn, (x,))
    check_function(other, (x,))
    for program, has_ufunc in ((fn, False), (other, True)):
        names = straightened(program).straight.run.__globals__.values()
        assert any(value is np.multiply for value in names) == has_ufunc


SHORT = [
    (lambda x: (np.fft.rfft(x), np.fft.ifft(x, 3), np.fft.fft(x, norm="ortho")), X[0]),
    (lambda x: (np.fft.irfft(x + 0j), np.fft.rfft2(x)), X),
    (lambda x: (x.mean(), x.mean(0), x.mean(1, keepdims=True)), X.astype(np.float32) / 3),
    (lambda x: (x.mean(), x.mean(0), (x > 1).mean()), np.arange(12).reshape(4, 3)),
    (lambda x: (np.clip(x, -0.5, 1), np.clip(x, 1, 0.5), np.clip(x, np.nan, 1)), X),
    (lambda x: np.clip(x, -0.5, 1), np.array([np.nan, -0.0, np.inf], np.float32)),
    (lambda x: (np.full((2, 3), x[0, 0]), np.full(2, x.sum(), int), np.sort(x), np.sort(x, 0)), X),
]


@pytest.mark.parametrize(("f", "x"), SHORT)
def test_short_forms_give_the_bits_of_numpys_functions(f, x):
    fn = lt.trace(f, x)

    check_function(fn, (x,))
    assert_same(f(x), lt.jit(f, exact=True, kernels="off")(x))


def test_the_norm_of_a_column_is_rounded_as_numpys():
    """NumPy copies the column first: its product with itself may differ in the last bit."""
    batch = np.random.default_rng(0).normal(size=(60, 4, 3))
    plan = straightened(lt.trace(lambda x: np.linalg.norm(x[:, 1]), batch[0]))

    for x in batch:
        assert plan.run([x])[0] == np.linalg.norm(x[:, 1])
