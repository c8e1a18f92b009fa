"""The slots plan: results, errors and freeing of ``run_forward`` [C1, C2, C4, C5]."""

import gc
import itertools
import sys
import threading
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings

import letir as lt
from letir.ast.attrs import Attrs
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import ArrayType, Undef
from letir.errors import GuardError
from letir.eval.evaluator import run_flat
from letir.eval.memory_checks import memory_owner
from letir.plan.plan import Plan, plan_of
from letir.testing import applied_program, assert_same
from letir.testing.strategies import programs
from tests.each_sample import each_sample, in_one_test
from tests.eval.stand_in import DeviceArray, DeviceModule, modules, moved
from tests.eval.test_memory_checks import UPDATES, filled, filled_in_columns, read_and_filled

X = np.linspace(-1.0, 2.0, 6).reshape(2, 3)
PLACES = np.array([3, 0, 1, 1])


def planned(fn, *args) -> tuple:
    """The results of the plan of ``fn``."""
    return plan_of(fn).run(list(args))


def check_plan(fn, args) -> None:
    """Assert that the plan agrees with run_forward in values, kinds and sharing of memory."""
    args = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
    try:
        expected = run_flat(fn, list(args))
    except np.linalg.LinAlgError:  # such as the gradient of qr at a singular matrix
        with pytest.raises(np.linalg.LinAlgError):
            planned(fn, *args)
        return
    found = planned(fn, *args)
    assert len(expected) == len(found)
    for a, b in zip(expected, found, strict=True):
        assert a is b if a is Undef else type(a) is type(b)
        if a is not Undef:
            assert_same(a, b)
    # which results share memory with each other, and with which arguments
    assert [owner(expected, args, a) for a in expected] == [owner(found, args, b) for b in found]


def owner(results, args, result) -> int:
    """The first argument or result that shares memory with this result."""
    return [id(memory_owner(x)) for x in (*args, *results)].index(id(memory_owner(result)))


def test_a_plan_updates_a_donated_array_in_place():
    f = lt.trace(lambda x, v: x.at[0].set(v), np.zeros(3), 1.0)
    x = np.zeros(3)

    (found,) = Plan(f, donated=(0,)).run([x, 3.0])

    assert found is x
    assert_same(np.array([3.0, 0.0, 0.0]), x)


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@each_sample(in_one_test=True)
def test_every_operation_agrees_with_run_forward(op, sample):
    for constants in (False, True):
        check_plan(*applied_program(op, sample, constants=constants))


@given(programs())
def test_generated_programs_agree_with_run_forward(program):
    check_plan(*program)


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@settings(max_examples=40)
@given(programs())
def test_gradients_agree_with_run_forward(program):
    fn, args = program
    try:
        df = lt.differentiate(fn).joined()
    except lt.LetirError:
        return
    cts = [np.ones(p.type.shape, p.type.dtype) for p in df.params[len(args) :]]
    check_plan(df, [*args, *cts])


# ---- numbers among the operands ----


@in_one_test
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "i1", "u1", "i8", "?"])
@pytest.mark.parametrize("number", [2, 0.1, 1j, True, -3, float("nan"), -0.0])
def test_a_python_number_has_the_dtype_that_numpy_gives_it(dtype, number):
    """It becomes an array of the promoted dtype of the operation, made once."""
    x = np.arange(3).astype(dtype)
    for name in ("add", "mul", "less", "maximum", "power", "div"):
        builder = LetBuilder()
        try:
            made = PRIMITIVES[name](builder.param(ArrayType(dtype, (3,))), number)
        except lt.LetirError:
            continue
        check_outcome(builder.build([made]), x)


@in_one_test
@pytest.mark.parametrize("number", [300, -1, 1e300, 1e-300, 2**40])
@pytest.mark.parametrize("dtype", ["u1", "f4", "f2", "i4"])
def test_a_python_number_that_does_not_fit_raises_or_warns_as_in_numpy(dtype, number):
    for name in ("add", "less", "equal", "mul"):
        builder = LetBuilder()
        made = PRIMITIVES[name](builder.param(ArrayType(dtype, (3,))), number)
        check_outcome(builder.build([made]), np.arange(3).astype(dtype))


def check_outcome(fn, *args) -> None:
    """Assert that the plan has the results, warnings and errors of run_forward."""
    found = outcome(lambda: planned(fn, *args))

    assert outcome(lambda: run_flat(fn, list(args))) == found


def outcome(run) -> tuple:
    """(the results or the error, the floating point flags that were set)."""
    flags: list = []
    with np.errstate(all="call", call=lambda kind, flag: flags.append(kind)):
        try:
            results = [(r.dtype, r.tobytes()) for r in run()]
        except (OverflowError, TypeError, ValueError) as error:
            results = [repr(error)]
    return results, flags


def test_steps_of_a_plan_call_numpys_ufuncs_directly():
    fn = lt.trace(lambda x, y: np.arctan2(x, y) * y, X, X)

    assert [f for _, f, *_ in plan_of(fn).tables[np].steps] == [np.arctan2, np.multiply]


def test_numbers_next_to_arrays_are_converted_when_the_plan_is_made():
    fn = lt.trace(lambda x: np.maximum(x * 2, 0.5), X)

    assert [np.ndarray, np.ndarray] == [type(n) for n in plan_of(fn).tables[np].rest]


def test_python_integers_are_computed_exactly():
    fn = lt.trace(lambda x, y: x * y, 3, 4)

    with pytest.raises(OverflowError):
        planned(fn, 2**40, 2**40)


# ---- freeing ----

ALIVE: dict[int, weakref.ref] = {}
KEYS = itertools.count()


def new_array(*operands, results=1):
    """Makes arrays and tracks them while they are alive; fails for an operand of nan."""
    if any(np.isnan(x).any() for x in operands):
        raise ValueError("nan")
    if any(np.isinf(x).any() for x in operands):
        raise KeyboardInterrupt
    made = []
    for _ in range(results):
        array, key = np.ones(3), next(KEYS)
        ALIVE[key] = weakref.ref(array, lambda _, key=key: ALIVE.pop(key, None))
        made.append(array)
    COUNTS.append(len(ALIVE))
    return tuple(made)


COUNTS: list[int] = []


@pytest.fixture
def alive():
    """The operations ``make`` and ``make_two``, and the number of their arrays that are alive."""
    ALIVE.clear()
    COUNTS.clear()
    gc.disable()
    yield ALIVE
    gc.enable()
    for name in ("test.make", "test.two"):
        PRIMITIVES.pop(name, None)


def chain(alive):
    """x -> a -> b, (c, d) -> e of b and d, c unused; returns e."""
    one = lt.primitive("test.make", lambda xp, *xs: new_array(*xs)[0], aval=lambda *xs: xs[0])
    two = lt.primitive(
        "test.two", lambda xp, x: new_array(x, results=2), aval=lambda x: (x, x), results=2
    )

    def f(x):
        a = one(x)
        b = one(a)
        _, d = two(a)
        e = one(b, d)
        return one(e, e)

    return lt.trace(f, np.ones(3))


def test_every_array_is_freed_at_its_last_use(alive):
    """[C1]"""
    fn = chain(alive)
    alive.clear()
    COUNTS.clear()
    results = planned(fn, np.ones(3))

    # after each operation, which still holds its operands
    assert COUNTS == [1, 2, 4, 4 - 1, 2]
    assert len(alive) == 1
    del results
    assert not alive


@pytest.mark.parametrize(("bad", "error"), [(np.nan, ValueError), (np.inf, KeyboardInterrupt)])
def test_after_an_error_no_array_is_alive(alive, bad, error):
    """[C1]"""
    fn = chain(alive)
    alive.clear()
    plan, kept = plan_of(fn), []
    x = np.full(3, bad)
    gone = weakref.ref(x)
    leaves = [x]
    del x
    with pytest.raises(error) as found:
        plan.run(leaves)
    kept.append(found.value)

    assert not alive
    assert gone() is None
    assert "test.make" in found.value.__notes__[0]


def test_unused_arguments_are_not_kept():
    fn = lt.trace(lambda x, y: np.exp(y), X, X)
    x = X.copy()
    gone = weakref.ref(x)
    leaves = [x, X]
    del x
    seen = []
    plan = plan_of(fn)
    (kind, f, *rest), *_ = plan.tables[np].steps
    plan.tables[np].steps = ((kind, lambda y: seen.append(gone()) or f(y), *rest),)
    plan.run(leaves)

    assert seen == [None]


def test_a_plan_is_freed_with_its_program():
    """A plan holds no reference back to its program."""
    fn = lt.trace(lambda x: np.exp(x) * 2.0, X)
    planned(fn, X)
    gone = weakref.ref(fn)
    gc.disable()
    del fn
    found = gone()
    gc.enable()

    assert found is None


# ---- updates ----


@pytest.mark.parametrize("program", [filled, read_and_filled, filled_in_columns])
def test_updates_of_one_buffer_make_no_copies(program):
    """[C2]"""
    x, v = np.zeros(50_000), np.arange(1.0, UPDATES + 1) / UPDATES
    fn = lt.trace(program, x, v)
    expected = program(x, v)
    tracemalloc.start()
    try:
        (found,) = planned(fn, x, v)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert_same(expected, found)
    assert peak < 3 * x.nbytes


def test_an_argument_is_not_updated():
    """[C2]"""
    fn = lt.trace(lambda x: lt.numpy.array(x).at[0].set(1.0), np.zeros(3))
    x = np.zeros(3)
    planned(fn, x)

    assert_same(np.zeros(3), x)


# ---- errors and effects ----


def test_an_error_has_the_same_notes_as_in_run_forward():
    fn = lt.trace(lambda x: np.linalg.inv(x + 0.0) * 2.0, np.eye(2))
    notes = []
    for run in (run_flat, lambda f, leaves: plan_of(f).run(leaves)):
        with pytest.raises(np.linalg.LinAlgError) as found:
            run(fn, [np.zeros((2, 2))])
        notes.append(found.value.__notes__)

    assert notes[0] == notes[1]
    assert "test_plan.py" in notes[0][0]


def test_a_failed_guard_says_where_and_what():
    fn = lt.trace(lambda x: x if x.sum() > 0 else -x, X + 9.0)
    with pytest.raises(GuardError) as by_plan:
        planned(fn, X - 9.0)
    with pytest.raises(GuardError) as by_evaluator:
        run_flat(fn, [X - 9.0])

    assert str(by_plan.value) == str(by_evaluator.value)
    assert "test_plan.py" in str(by_plan.value)


def test_effects_happen_in_order_and_once(capsys):
    """[C5]"""

    def f(x):
        lt.debug.print("first {}", x)
        y = x * 2.0
        lt.debug.print("second {}", y)
        return y

    fn = lt.trace(f, 1.0)
    capsys.readouterr()
    planned(fn, 3.0)

    assert capsys.readouterr().out.split() == ["first", "3.0", "second", "6.0"]


# ---- bodies, groups, constants ----


def test_bodies_run_as_plans():
    fn = lt.trace(lt.checkpoint(lambda x: np.sin(x) * 2.0), X)
    (bind,) = fn.binds
    check_plan(fn, [X])

    assert Plan in bind.attrs["body"]._memo


def test_the_binds_of_a_group_are_steps_of_the_enclosing_plan():
    inner = LetBuilder()
    a, b = (inner.param(ArrayType(float, (3,))) for _ in range(2))
    body = inner.build([a * b + 1.0, a])
    outer = LetBuilder()
    x, y = (outer.param(ArrayType(float, (3,))) for _ in range(2))
    op = PRIMITIVES["fused"]
    first = outer.apply(op, (x, y), Attrs(body=body))
    second = outer.apply(op, first, Attrs(body=body))
    fn = outer.build([*second, first[1]])
    check_plan(fn, [np.arange(3.0), np.ones(3)])

    assert [f for _, f, *_ in plan_of(fn).tables[np].steps] == [np.multiply, np.add] * 2


def test_an_error_behind_a_group_has_its_line():
    run = lt.compile(lt.trace(lambda x: np.linalg.inv(x * 2 + x), np.eye(3)))
    with pytest.raises(np.linalg.LinAlgError, match="Singular") as caught:
        run(np.zeros((3, 3)))

    assert ["fused", "inv"] == [bind.op.name for bind in run.plan.binds]
    assert " = inv(%1)  # test_plan.py:" in caught.value.__notes__[0]


def test_an_error_in_a_group_lists_the_innermost_line_first():
    inner = LetBuilder()
    body = inner.build([PRIMITIVES["inv"](inner.param(ArrayType(float, (2, 2))))])
    outer = LetBuilder()
    x = outer.param(ArrayType(float, (2, 2)))
    fn = outer.build(outer.apply(PRIMITIVES["fused"], (x,), Attrs(body=body)))
    with pytest.raises(np.linalg.LinAlgError) as found:
        planned(fn, np.zeros((2, 2)))

    assert ["inv" in found.value.__notes__[0], "fused" in found.value.__notes__[1]] == [True, True]


def test_results_share_no_memory_with_constants():
    """[C4]"""
    fn = lt.trace(lambda x: (lt.numpy.array([1.0, 2.0]), x, lt.numpy.array([1.0, 2.0])[::-1]), X)
    for _ in range(2):
        first, _, reversed_ = planned(fn, X)
        assert_same(np.array([1.0, 2.0]), first)
        assert_same(np.array([2.0, 1.0]), reversed_)
        first[:] = reversed_[:] = 7.0


@pytest.mark.parametrize("n", [3, 2.5])
def test_a_number_next_to_a_python_number_selects_the_same_loop(n):
    """NumPy's ldexp of a Python integer and an array is a float16."""
    assert_same(np.ldexp(n, 15), lt.jit(lambda n: np.ldexp(n, 15))(n))


def test_the_wrong_number_of_arguments_is_an_error():
    with pytest.raises(lt.errors.InternalError, match="called with 2"):
        planned(lt.trace(lambda x: x * 2.0, X), X, X)


# ---- threads, nesting, devices ----


def test_threads_run_one_plan_at_the_same_time():
    fn = lt.trace(lambda x, y: ((x @ y).T + x.sum()) * y[0, 0] + np.tanh(y), np.eye(3), np.eye(3))
    plan, barrier = plan_of(fn), threading.Barrier(16)

    def work(k):
        barrier.wait()
        x, y = np.full((3, 3), k + 1.0), np.eye(3) * k
        expected = run_flat(fn, [x, y])
        return all(
            np.array_equal(plan.run([x, y])[0], expected[0], equal_nan=True) for _ in range(50)
        )

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(16) as pool:
            assert all(pool.map(work, range(16)))
    finally:
        sys.setswitchinterval(before)


def test_a_plan_may_run_inside_itself():
    plans = []
    again = lt.primitive(
        "test.again",
        lambda xp, x: x if x.sum() > 9 else plans[0].run([x + 1.0])[0],
        aval=lambda x: x,
    )
    try:
        fn = lt.trace(lambda x: again(x * 2.0) - 1.0, np.full(3, 9.0))
        plans.append(plan_of(fn))

        assert_same(run_flat(fn, [np.ones(3)]), plans[0].run([np.ones(3)]))
    finally:
        PRIMITIVES.pop("test.again", None)


def test_arrays_on_a_device_stay_on_it(monkeypatch):
    device = DeviceModule()
    for name, module in modules(device).items():
        monkeypatch.setitem(sys.modules, name, module)
    fn = lt.trace(lambda x, y: np.exp(x) * 2.0 + np.arange(3.0) @ y, X, np.ones((3, 3)))
    (found,) = plan_of(fn).run([moved(X), moved(np.ones((3, 3)))], device)

    assert isinstance(found, DeviceArray)
    assert_same(run_flat(fn, [X, np.ones((3, 3))])[0], found.host)


def test_constants_are_copied_to_the_device_once(monkeypatch):
    """[C3] A copy in each call would make the host wait for the device."""
    table, copies = np.arange(3.0), []

    class Counting(DeviceModule):
        def asarray(self, value, dtype=None):
            copies.append(value)
            return super().asarray(value, dtype)

    monkeypatch.setitem(sys.modules, "cupy", Counting())
    f = lt.jit(lambda x: (table, x @ table))
    for _ in range(3):
        constant, product = f(moved(X))
        constant.host[:] = 0  # a copy of the plan's own array

    assert_same(X @ table, product.host)
    assert len(copies) == 1


def test_a_plan_takes_a_kilobyte_a_bind():
    """The recorded program, its optimised form and the plan, as ``jit`` keeps them."""
    n = 400

    def chain(x):
        for _ in range(n // 2):
            x = np.sqrt(np.sin(x) * 1.5 + 2.0)
        return x

    def kept(f) -> int:
        before = tracemalloc.get_traced_memory()[0]
        f(np.ones(4))
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        kept(lt.jit(lambda x: np.sqrt(np.sin(x) * 1.5 + 2.0), kernels="off"))  # imports modules
        found = kept(lt.jit(chain, kernels="off"))
    finally:
        tracemalloc.stop()

    assert found < 1_500 * 2 * n


def test_numbers_of_different_types_do_not_share_a_slot():
    """0 == 0.0 in Python, but they promote differently."""
    f = lt.parse(
        "lambda %0, %1 { %2 = where(%0, 0, %1); %3 = where(%0, 0.0, %1); return (%2, %3) }"
    )
    f = lt.retype(f, ArrayType(bool, (3,)), ArrayType(np.int64, (3,)))
    found = plan_of(f).run([np.array([True, False, True]), np.arange(3)])

    assert [np.dtype(np.int64), np.dtype(np.float64)] == [array.dtype for array in found]


@pytest.mark.parametrize("number", [1e-60, -1e-60, 2.0**-140, 1e-40, 1e60, complex(1e60, 0)])
def test_a_number_that_a_dtype_rounds_has_the_floating_point_errors_of_numpy(number):
    x = np.ones(3, np.complex64 if type(number) is complex else np.float32)
    with np.errstate(all="ignore"):
        f = lt.trace(lambda x: x + number, x)

    def outcome(run):
        with np.errstate(all="raise"):
            try:
                return run().tobytes()
            except FloatingPointError as error:
                return str(error)

    assert outcome(lambda: x + number) == outcome(lambda: plan_of(f).run([x])[0])


@pytest.mark.parametrize("f", [lambda x: np.take(x, PLACES), lambda x: np.bincount(PLACES, x, 4)])
def test_functions_that_copy_read_only_arrays_get_a_writable_view_of_a_constant(f):
    fn = lt.trace(f, np.arange(4.0))
    plan = plan_of(fn)
    arrays = [x for x in plan.table.rest if type(x) is np.ndarray and x.shape]

    constant, view = arrays
    assert (False, True) == (constant.flags.writeable, view.flags.writeable)
    assert view.base is constant
    assert_same(f(np.arange(4.0)), plan.run([np.arange(4.0)])[0])
