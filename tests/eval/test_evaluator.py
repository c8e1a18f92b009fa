"""``run_forward``: its results, when values are freed, and what its errors say."""

import gc
import itertools
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letir as lt
from letir.ast.attrs import NO_ATTRS, Attrs
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Const, Source
from letir.ast.text.parser import parse
from letir.ast.types import ArrayType, Undef
from letir.eval.computing_emitter import ComputingEmitter
from letir.eval.evaluator import compute, run_flat
from letir.testing import assert_same
from letir.visitors.usedef import uses
from tests.each_sample import in_one_test

X = np.array([1.0, -2.0, 3.0])
VECTOR = ArrayType(float, (3,))


class Stage:
    """The arrays made by the operation ``tests.act``, and which of them are alive.

    ``before(index)`` is called when the operation runs for the ``index``-th time.
    """

    def __init__(self):
        self.alive, self.ran, self.before = set(), 0, lambda index: None

    def new(self) -> np.ndarray:
        """A new array; it is in ``alive`` until it is freed."""
        array = np.ones(3)
        key = next(KEYS)
        self.alive.add(key)
        weakref.finalize(array, self.alive.discard, key)
        return array

    def act(self, n: int) -> tuple:
        """``n`` new arrays."""
        index, self.ran = self.ran, self.ran + 1
        self.before(index)
        return tuple([self.new() for _ in range(n)])


KEYS = itertools.count()
STAGE = Stage()
ACT = lt.primitive(
    "tests.act",
    lambda xp, *arrays, n=1: STAGE.act(n),
    lambda *types, n: (VECTOR,) * n,
    results=lambda *, n: n,
)


@contextmanager
def stage():
    """An empty stage; the cyclic garbage collector is off."""
    STAGE.__init__()
    gc.disable()
    try:
        yield STAGE
    finally:
        gc.enable()


@st.composite
def plays(draw) -> lt.Lambda:
    """A program of ``tests.act``: locals are used often, once, or never, and some are returned."""
    builder = LetBuilder()
    known = [builder.param(VECTOR).arg for _ in range(draw(st.integers(0, 3)))]
    for _ in range(draw(st.integers(1, 8))):
        args = draw(st.lists(st.sampled_from(known), max_size=3)) if known else []
        known += builder.emit(ACT, tuple(args), Attrs(n=draw(st.integers(0, 2))))
    return builder.build(draw(st.lists(st.sampled_from(known), max_size=3)) if known else [])


# ---- freeing ----


@given(plays())
def test_at_every_operation_only_arrays_of_live_locals_are_alive(f):
    """[C1] Live are operands too, but neither unused results nor unused parameters."""
    seen = []
    with stage() as play:
        play.before = lambda index: seen.append(len(play.alive))
        results = run_flat(f, [play.new() for _ in f.params])
        kept = len(play.alive)
        del results

        assert [len(uses(f).live_at(i)) for i in range(len(f))] == seen
        assert len(set(f.ret.locals())) == kept
        assert set() == play.alive


@given(plays(), st.data())
def test_after_an_exception_no_array_is_alive(f, data):
    """[C1] Whichever operation fails, even while the exception and its traceback are kept."""
    failing = data.draw(st.integers(0, len(f) - 1))

    def fail(index):
        if index == failing:
            raise ValueError("the show is over")

    with stage() as play:
        play.before = fail
        with pytest.raises(ValueError, match="the show is over") as caught:
            run_flat(f, [play.new() for _ in f.params])

        assert caught.value.__traceback__ is not None
        assert set() == play.alive


def test_parameters_are_freed_at_their_last_use():
    """[C1] The evaluator's own frames keep no arguments."""
    f = parse("""
    lambda %0, %1, %2 {
      %3 = tests.act(%0)
      %4 = tests.act(%2)
      %5 = tests.act()
      return %5
    }""")
    seen = []
    with stage() as play:
        play.before = lambda index: seen.append(len(play.alive))
        lt.run_forward(f, play.new(), play.new(), play.new())

    assert [2, 1, 0] == seen


def test_an_observer_keeps_no_array_alive():
    f = parse("lambda %0 { %1 = tests.act(%0); %2 = tests.act(%1); %3 = tests.act(%2); return %3 }")
    seen = []
    with stage() as play:
        lt.run_forward(f, play.new(), observe=lambda bind, results: seen.append(len(play.alive)))

    assert [1, 1, 1] == seen


def test_an_array_used_twice_in_one_operation_is_freed_after_it():
    f = parse(
        "lambda %0 { %1 = tests.act(%0, %0); %2 = tests.act(%1, %1); %3 = tests.act(); return %3 }"
    )
    seen = []
    with stage() as play:
        play.before = lambda index: seen.append(len(play.alive))
        lt.run_forward(f, play.new())

    assert [1, 1, 0] == seen


def test_values_in_a_nested_body_are_freed_inside_it():
    """[C1] The operands of the bind that holds the body live until it ends."""
    body = parse("lambda %0, %1 { %2 = tests.act(%1); %3 = tests.act(%2); return %3 }")
    builder = LetBuilder()
    ct, x = builder.param(VECTOR), builder.param(VECTOR)
    attrs = Attrs(n_cts=1, body=body)
    inner = builder.emit(PRIMITIVES["when_defined"], (ct.arg, x.arg), attrs)
    f = builder.build(builder.emit(ACT, inner, Attrs(n=1)))
    seen = []
    with stage() as play:
        play.before = lambda index: seen.append(len(play.alive))
        lt.run_forward(f, play.new(), play.new())

    assert [2, 3, 1] == seen


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interruption_frees_all_arrays(kind):
    """[C1] Also by an exception that is not an ``Exception``."""
    f = parse(
        "lambda %0 { %1 = tests.act(%0); %2 = tests.act(%1); %3 = tests.act(%0, %2); return %3 }"
    )

    def interrupt(index):
        if index == 2:
            raise kind

    with stage() as play:
        play.before = interrupt
        with pytest.raises(kind) as caught:
            lt.run_forward(f, play.new())

        assert caught.value.__traceback__ is not None
        assert set() == play.alive


def fail(array):
    raise KeyError(len(array))


def by_cause(array):
    try:
        fail(array)
    except KeyError as error:
        found = error
    raise ValueError("translated") from found


def by_context(array):
    try:
        fail(array)
    except KeyError:
        raise ValueError("translated")  # noqa: B904  the test is about the implicit context


def by_group(array):
    try:
        fail(array)
    except KeyError as error:
        found = error
    raise ExceptionGroup("several", [found])


@pytest.mark.parametrize("translate", [by_cause, by_context, by_group])
def test_frames_of_causes_and_contexts_keep_no_array_alive(translate):
    """[C1] The arrays are in the frames of several tracebacks."""
    failing = lt.primitive("tests.translate", lambda xp, x: translate(x), lambda x: x)
    f = lt.trace(failing, lt.ShapeDtype(3))
    with stage() as play:
        with pytest.raises(Exception, match=r"translated|several") as caught:
            lt.run_forward(f, play.new())

        assert caught.value.__traceback__ is not None
        assert set() == play.alive


def test_frames_of_an_earlier_exception_are_not_cleared():
    """They belong to the user, who may inspect them."""

    def fail(evidence):
        raise KeyError("first")

    f = parse("lambda %0 { guard(%0, value=True); return %0 }")
    try:
        fail("kept")
    except KeyError as first:
        with pytest.raises(lt.GuardError):
            lt.run_forward(f, False)
        frame = first.__traceback__.tb_next.tb_frame

    assert {"evidence": "kept"} == frame.f_locals


def test_the_peak_of_a_chain_is_two_arrays():
    """[C1] 200 operations on one array."""
    builder = LetBuilder()
    y = builder.param(ArrayType(float, (100_000,)))
    for _ in range(200):
        y = -y
    f, x = builder.build([y]), np.ones(100_000)
    f(x)
    tracemalloc.start()
    try:
        f(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 2 * x.nbytes <= peak < 2.1 * x.nbytes


def test_a_program_is_freed_when_its_last_reference_is_dropped():
    """No data cached with it refers back to it."""
    gone = []
    with stage():
        f = parse("lambda %0 { %1 = exp(%0); return %1 }")
        weakref.finalize(f, gone.append, True)
        f(X)
        del f

    assert [True] == gone


# ---- results ----


def test_a_parameter_may_be_returned_twice():
    """[C2]"""
    f = lt.trace(lambda x, y: (x, y, x), X, X)
    y = X + 1

    results = f(X, y)

    assert [True, True, True] == [a is b for a, b in zip(results, (X, y, X), strict=True)]


@in_one_test
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(),
        lambda x: x[0],
        lambda x: x.reshape(3, 1)[:, 0],
        lambda x: np.reshape(x.sum(), ()),
        lambda x: np.array(2.0) * np.float32(3),
        lambda x: x.sum() + 1,
        lambda x: np.broadcast_to(x.sum(), ()),
        lambda x: x[1:2].reshape(()),
        lambda x: x.sum(keepdims=True).squeeze(),
        lambda x: x[..., 0],
        lambda x: x.argmax(),
        lambda x: (x > 0).any(),
        lambda x: 2.5,
        lambda x: (x, 3, x.astype("float32").sum()),
        lambda x: np.where(x[0] > 0, x[0], 1.0),
        lambda x: np.expand_dims(x.sum(), 0),
    ],
)
def test_results_have_the_python_type_that_numpy_gives_them(function):
    """[C4] A scalar, a 0-d array or a Python number."""
    assert_same(function(X), lt.trace(function, X)(X))


def test_a_python_number_is_returned_as_a_python_number():
    """[C4]"""
    f = lt.trace(lambda x, rate: (rate, x * rate), X, 0.5)

    assert_same((0.25, X * 0.25), f(X, 0.25))


TABLE = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: TABLE,
        lambda x: (TABLE, TABLE),
        lambda x: lt.numpy.asarray(TABLE)[1:],
        lambda x: lt.numpy.asarray(TABLE).T.reshape(3, 2)[0],
        lambda x: np.broadcast_to(lt.numpy.asarray(TABLE), (4, 2, 3)),
    ],
)
def test_results_share_no_memory_with_a_constant(function):
    """[C4] They are writable; the next call returns the same values."""
    f = lt.trace(function, X)
    expected = lt.trace(function, X)(X)
    for result in results_of(f, X):
        assert result.flags.writeable
        result[...] = -1

    assert_same(expected, f(X))
    assert not any(
        np.shares_memory(r, c.attrs["value"]) for r in results_of(f, X) for c in f.constants
    )


def results_of(f, *args) -> list:
    """The results as a flat list."""
    found = f(*args)
    return list(found) if isinstance(found, tuple) else [found]


def test_the_constant_of_a_nested_body_is_copied_when_returned():
    """[C4]"""
    body = parse("lambda %0 { %1 = constant(value=float64[2]{1.0, 2.0}); return %1 }")
    builder = LetBuilder()
    ct = builder.param(VECTOR)
    f = builder.build(
        builder.emit(PRIMITIVES["when_defined"], (ct.arg,), Attrs(n_cts=1, body=body))
    )

    f(X)[:] = -1

    assert [1.0, 2.0] == f(X).tolist()


def test_a_sliding_window_view_of_a_constant_is_copied_when_returned():
    """[C4] NumPy's stride tricks put an object between a view and its array."""
    windows = lt.primitive(
        "tests.windows",
        lambda xp, x: xp.lib.stride_tricks.as_strided(x, (2, 2), (8, 8)),
        lambda x: ArrayType(x.dtype, (2, 2)),
    )
    builder = LetBuilder()
    f = builder.build(builder.emit(windows, (builder.constant(np.arange(3.0)),)))

    assert not np.shares_memory(f(), f.constants[0].attrs["value"])


VIEWING = [
    lambda x: x[1:],
    lambda x: x[[0, 1]],
    lambda x: x[x > 0],
    lambda x: x.reshape(3, 1),
    lambda x: x.ravel(),
    lambda x: x.T,
    np.flip,
    lambda x: np.squeeze(x[None]),
    lambda x: np.broadcast_to(x, (2, 3)),
    lambda x: np.split(x, 3)[1],
    np.real,
    lambda x: np.expand_dims(x, 0),
    lambda x: x.copy(),
    lambda x: x.flatten(),
    lambda x: x.astype(float),
    lambda x: x + 0,
    np.positive,
    lambda x: np.where(True, x, x),
    lambda x: np.concatenate([x]),
    lambda x: np.pad(x, 0),
    lambda x: np.clip(x, -9, 9),
    np.cumsum,
    lambda x: x,
]


@in_one_test
@pytest.mark.parametrize("function", VIEWING)
def test_results_are_views_of_arguments_where_they_are_in_numpy(function):
    """[C4]"""
    assert np.shares_memory(function(X), X) == np.shares_memory(lt.trace(function, X)(X), X)


# ---- the order of effects ----


def logging(log: list):
    """An operation with an effect: it appends its attribute to ``log``."""

    def impl(xp, x, *, text):
        log.append(text)
        return ()

    return lt.primitive(
        "tests.log", impl, lambda x, *, text: (), results=lambda *, text: 0, effect=True
    )


def test_effects_happen_in_program_order():
    """[C5]"""
    log: list = []
    write, builder = logging(log), LetBuilder()
    x = builder.param(VECTOR)
    for text in "abc":
        builder.emit(write, (x.arg,), Attrs(text=text))
        x = -x
    builder.build([x])(X)

    assert ["a", "b", "c"] == log


def test_a_guard_runs_before_the_binds_of_its_branch():
    """[C5]"""
    log: list = []
    write, builder = logging(log), LetBuilder()
    x = builder.param(VECTOR)
    builder.emit(PRIMITIVES["guard"], ((x.sum() > 0).arg,), Attrs(value=True))
    builder.emit(write, (x.arg,), Attrs(text="in the branch"))
    f = builder.build([x])

    with pytest.raises(lt.GuardError, match="recorded where this was True, now it is False"):
        f(-np.ones(3))
    assert [] == log


# ---- observers ----


def test_an_observer_sees_every_bind_and_its_results():
    x, seen = np.array([2.0, 4.0]), []
    f = parse("lambda %0 { %1 = neg(%0); %2, %3 = split(%1, sections=2); return %3 }")

    lt.run_forward(f, x, observe=lambda bind, results: seen.append((bind, results)))

    assert list(f.binds) == [bind for bind, _ in seen]
    assert_same(((-x,), (-x[:1], -x[1:])), tuple(tuple(results) for _, results in seen))


def test_an_observer_sees_a_guard_without_results():
    f = lt.trace(lambda x: x if x.sum() > 0 else -x, X)
    seen = []
    lt.run_forward(f, X, observe=lambda bind, results: seen.append((bind.op.name, len(results))))

    assert ("guard", 0) in seen


def test_debug_nans_names_the_bind_that_made_a_nan():
    f = lt.trace(lambda x: np.sqrt(x) + np.log(np.abs(x)), np.ones(3))
    with np.errstate(invalid="ignore"), pytest.raises(FloatingPointError) as caught:
        lt.run_forward(f, X, debug_nans=True)

    assert "sqrt made a nan" == str(caught.value)
    assert "sqrt(%0)" in caught.value.__notes__[0]
    assert "test_evaluator.py" in caught.value.__notes__[0]


def test_a_program_without_nans_runs_with_debug_nans_and_an_observer():
    f, seen = lt.trace(lambda x, n: (np.exp(x) + n, x > 0, x.sum() * 2), X, 1), []

    found = lt.run_forward(f, X, 1, debug_nans=True, observe=lambda *args: seen.append(args))

    assert_same(f(X, 1), found)
    assert len(f) == len(seen)


def test_debug_nans_checks_python_numbers():
    f = lt.trace(lambda x: x - x, 1.0)

    assert_same(0.0, lt.run_forward(f, 2.0, debug_nans=True))
    with pytest.raises(FloatingPointError, match="made a nan"), np.errstate(invalid="ignore"):
        lt.run_forward(f, np.inf.__float__(), debug_nans=True)


def test_an_observer_that_raises_ends_the_run_with_the_source_line():
    f = parse("lambda %0 { %1 = neg(%0); return %1 }")
    error = RuntimeError("seen enough")

    def stop(bind, results):
        raise error

    with pytest.raises(RuntimeError) as caught:
        lt.run_forward(f, X, observe=stop)
    assert error is caught.value
    assert ["letir: in %1 = neg(%0)"] == error.__notes__


# ---- errors ----


def test_an_exception_is_reraised_with_the_let_line_and_the_users_line():
    """[C1] Architecture, section 8."""
    error = ValueError("as it was raised")

    def fail(array):
        raise error

    failing = lt.opaque(fail, VECTOR, name="tests.fail")
    builder = LetBuilder()
    x = builder.param(VECTOR, "x")
    builder.source = Source("/home/user/model.py", 12)
    f = builder.build(builder.emit(failing, ((-x).arg,)))

    with pytest.raises(ValueError, match="as it was raised") as caught:
        f(X)
    assert error is caught.value
    assert [
        "letir: in %2: float64[3] = tests.fail(%1)  # model.py:12\n  at /home/user/model.py:12"
    ] == error.__notes__


def test_an_exception_in_a_nested_body_lists_lines_from_the_inside_out():
    body = parse("lambda %0 { %1 = reshape(%0, shape=(7,)); return %1 }")
    builder = LetBuilder()
    attrs = Attrs(n_cts=1, body=body)
    f = builder.build(builder.emit(PRIMITIVES["when_defined"], (builder.param(VECTOR).arg,), attrs))

    with pytest.raises(ValueError, match="cannot reshape") as caught:
        f(X)
    inner, outer = caught.value.__notes__
    assert inner.startswith("letir: in %1 = reshape(%0, shape=(7,))")
    assert outer.startswith("letir: in %1 = when_defined(%0")


def test_an_operation_with_a_wrong_number_of_results_is_an_error():
    liar = lt.primitive("tests.liar", lambda xp, x: (x,), lambda x: (x, x), results=lambda: 2)
    builder = LetBuilder()
    f = builder.build(builder.emit(liar, (builder.param(VECTOR).arg,)))

    with pytest.raises(ValueError, match="shorter"):
        f(X)


# ---- calling ----


def test_arguments_and_results_nest_as_recorded():
    def model(params, x, *, scale):
        return {"y": params["w"] * x * scale, "parts": [params["w"], (x,)]}

    params = {"w": X, "unused": X}
    f = lt.trace(model, params, X, scale=2.0)

    assert_same(model({"w": X, "unused": X}, 3 * X, scale=4.0), f(params, 3 * X, scale=4.0))
    assert_same(f(params, X, scale=1.0), lt.run_forward(f, params, X, scale=1.0))


def test_arguments_of_another_structure_are_refused():
    f = lt.trace(lambda params: params["w"] * 2, {"w": X})

    with pytest.raises(lt.DTypeError, match=r"nested as .*'w'.*found .*'v'"):
        f({"v": X})


def test_another_value_of_a_static_argument_is_refused():
    f = lt.trace(lambda x, mode: x if mode == "same" else -x, X, "same")

    assert f(X, "same") is X
    with pytest.raises(lt.DTypeError, match=r"static argument .*'same'.*found 'other'"):
        f(X, "other")


def test_keywords_are_refused_by_a_program_without_keywords():
    with pytest.raises(lt.DTypeError, match="no keyword arguments, found axis"):
        parse("lambda %0 { return %0 }")(X, axis=0)


def test_one_result_is_returned_alone_and_no_results_as_an_empty_tuple():
    assert () == parse("lambda %0 { return () }")(X)
    assert parse("lambda %0 { return %0 }")(X) is X


def test_a_program_called_in_a_trace_is_inlined():
    """[B7]"""
    f = lt.trace(lambda x: np.exp(x) * 2, X)
    g = lt.trace(lambda x: lt.run_forward(f, -x), X)

    assert ["neg", "exp", "mul"] == [bind.op.name for bind in g.binds]
    assert_same(f(-X), g(X))


def test_threads_may_evaluate_one_program_concurrently():
    """[B3] The program is fresh, so all threads compute its use counts at once."""
    builder = LetBuilder()
    y = x = builder.param(ArrayType(float, (3,)))
    for i in range(300):
        y = y * 0.5 if i % 2 else y + x
    f = builder.build([y, x])
    inputs = [np.full(3, float(i)) for i in range(64)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(f, inputs))

    assert_same([lt.run_forward(f, x) for x in inputs], found)


def test_an_operation_may_evaluate_programs_in_its_impl():
    """[B3]"""
    inner = parse("lambda %0 { %1 = neg(%0); return %1 }")
    calling = lt.opaque(inner.__call__, VECTOR, name="tests.calling")
    f = lt.trace(lambda x: calling(x) * 2, lt.ShapeDtype(3))

    assert_same(-X * 2, f(X))


# ---- operations with bodies ----


def test_a_grad_of_runs_its_body():
    g = lt.differentiate(lt.trace(lambda x, y: x * y, X, X))
    out, residuals = g.forward(X, X + 1)

    assert_same(X * (X + 1), out)
    assert_same((X + 1, X), g.backward(residuals, np.ones(3)))


def test_a_grad_of_without_cotangents_returns_undefined_results():
    """[D7]"""
    body = parse("lambda %0, %1 { %2 = mul(%0, %1); return (%2, %0) }")
    attrs = Attrs(n_cts=1, body=body)

    assert (Undef, Undef) == compute(PRIMITIVES["when_defined"], (Undef, X), attrs)


def test_a_body_that_returns_none_gives_an_undefined_result():
    """[D9]"""
    body = parse("lambda %0 { return (None, %0) }")

    found = compute(PRIMITIVES["when_defined"], (X,), Attrs(n_cts=1, body=body))
    assert (Undef, True) == (found[0], found[1] is X)


# ---- the executor, which computes what is emitted ----


def test_an_executor_computes_emitted_operations():
    """[D15]"""
    split = PRIMITIVES["split"]

    (total,) = ComputingEmitter().emit(PRIMITIVES["add"], (X, Const(1.0)), NO_ATTRS)
    parts = ComputingEmitter().emit(split, (total,), split.complete({"sections": 3}))

    assert_same((X + 1.0, list(np.split(X + 1.0, 3))), (total, list(parts)))


def test_an_executor_runs_bodies():
    """[D15]"""
    body = parse("lambda %0, %1 { %2 = mul(%0, %1); return (%2, %0) }")
    attrs = Attrs(n_cts=1, body=body)

    found = ComputingEmitter().emit(PRIMITIVES["when_defined"], (X, X), attrs)

    assert_same((X * X, X), tuple(found))


def test_an_operation_applied_to_arrays_is_computed_at_once():
    assert_same(np.tanh(X), PRIMITIVES["tanh"](X))
    assert_same(3.0, float(PRIMITIVES["add"](1.0, 2.0)))
