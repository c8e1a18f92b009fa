"""``jit``: argument specs, guards, symbolic sizes, methods, errors and counters [F1, F2, B5]."""

import functools
import gc
import logging
import sys
import threading
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import letir as lt
from letir import GuardError, ShapeError, jit, trace
from letir.executor.argument_spec import ArgumentSpec
from letir.executor.calls import last_executed_graph
from letir.testing import assert_same
from letir.testing.strategies import programs
from tests.each_sample import in_one_test
from tests.eval.stand_in import DeviceArray, DeviceModule, modules, moved

X = np.arange(3.0)


def compiles(f) -> int:
    return f.counters["compiles"]


# ---- F1: the key of a plan ----


@pytest.mark.parametrize(
    "other",
    [
        X.astype(np.float32),
        np.ones((3, 1)),
        np.ones((3, 3))[:, 0],
        np.float64(1.0),
        1.0,
        1,
        1j,
        True,
        None,
        "a",
        lt.Variable(X),
        lt.Variable(X, requires_grad=True),
    ],
    ids=repr,
)
def test_an_argument_of_another_type_gets_another_plan(other):
    """[F1]"""
    f = jit(lambda x, y: x * 2 if isinstance(y, bool | str | type(None)) else x * y)
    f(X, X)
    f(X, other)
    f(X, other)

    assert compiles(f) == 2


def test_values_and_exact_strides_of_an_argument_are_not_in_the_key():
    """[F1]"""
    f = jit(lambda x: x.sum())
    f(np.zeros(3))
    f(np.ones(3))
    f(np.ones((3, 2))[:, 0])
    f(np.ones((3, 3))[:, 0])

    assert compiles(f) == 2  # one contiguous, one not


@pytest.mark.parametrize("values", [(1, True, 1.0), (0.0, -0.0), (float("nan"),)], ids=repr)
def test_static_values_are_distinguished_by_type_and_bits(values):
    """[F1]"""
    f = jit(lambda x, n: x * n, static_argnums=1)
    for value in values * 2:
        assert_same(X * value, f(X, value))

    assert compiles(f) == len(values)


def test_an_unhashable_static_value_is_refused():
    with pytest.raises(lt.DTypeError, match="hashable"):
        jit(lambda x, n: x, static_argnums=1)(X, [1])


def test_grad_mode_is_in_the_key():
    """[F1]"""
    f, x = jit(lambda x: (x * x * x * x * x).sum()), lt.Variable(X, requires_grad=True)
    f(x)
    with lt.no_grad():
        assert not f(x).requires_grad

    assert compiles(f) == 2


def test_the_value_of_a_python_number_is_not_in_the_key_and_is_weakly_typed():
    f, x = jit(lambda x, rate: x * rate), np.ones(3, np.float32)

    assert [f(x, rate).dtype for rate in (0.1, 0.2, 0.3)] == [np.float32] * 3
    assert compiles(f) == 1


# ---- sizes ----


def sizes_served(f, sizes) -> list:
    for n in sizes:
        x = np.arange(1.0, n + 1)
        assert_same(f.__wrapped__(x), f(x))
    return [str(entry.key) for entry in f.__letir_executor__.cache.entries.values()]


def test_a_second_size_gets_a_symbolic_plan_that_serves_further_sizes():
    """[F1, B10]"""
    f = jit(lambda x: np.exp(-x) / (x * x).mean(), kernels="off")  # the bits of NumPy

    assert sizes_served(f, [3, 4, 5, 1000, 7]) == ["float64[3]", "float64[n0+2]"]
    assert f.counters["hits"] == 3


def test_sizes_0_and_1_have_their_own_plans():
    f = jit(lambda x: (x + 1.0).sum())

    assert len(sizes_served(f, [3, 4, 1, 0, 5])) == 4


@pytest.mark.parametrize("static", [True, False])
def test_symbolic_sizes_can_be_used_at_once_or_never(static):
    f = jit(lambda x: x.sum() * 2.0, static_shapes=static)

    assert len(sizes_served(f, [3, 4, 5])) == (3 if static else 1)


READERS = {
    "division": lambda x: x / x.shape[0],
    "length": lambda x: x / len(x),
    "comparison": lambda x: x if x.shape[0] == 5 else -x,
    "shape": lambda x: x if x.shape == (6,) else -x,
    "not": lambda x: x if x.shape[0] != 5 else -x,
    "dict": lambda x: x * {5: 2.0}.get(x.shape[0], 3.0),
    "in": lambda x: x * (2.0 if x.shape[0] in (5, 7) else 3.0),
    "parity": lambda x: x * (x.shape[0] % 2),
    "order": lambda x: x if x.shape[0] > 5 else -x,
    "range": lambda x: sum(x[i] for i in range(x.shape[0])),
    "caught": lambda x: x * number_or(x.shape[0], 3),
    "zeros": lambda x: np.zeros(x.shape) + x,
    "arange": lambda x: np.arange(x.shape[0]) * x,
    "iteration": lambda x: [a * a for a in x][-1],
    "half": lambda x: x[: x.shape[0] // 2].sum(),
    "sqrt": lambda x: x * np.sqrt(x.size),
    "last": lambda x: x[x.shape[0] - 1] * x,
    "reshape": lambda x: np.tile(x, 2).reshape(2, -1) @ x,
    "cached": lambda x: x * squared(x.shape[0]),
    "unbiased": lambda x: np.std(x, ddof=1),
}


@functools.cache
def squared(n):
    return n * n


def number_or(n, other: int) -> int:
    try:
        return int(n)
    except Exception:
        return other


@in_one_test
@pytest.mark.parametrize("name", READERS)
def test_results_at_new_sizes_are_right_however_python_reads_the_size(name):
    """[F1]: a second size is tried with symbolic sizes, never with a wrong answer."""
    f = jit(READERS[name])
    for n in (3, 4, 5, 6, 7, 2, 4, 5):
        x = np.arange(1.0, n + 1)
        assert_same(f.__wrapped__(x), f(x))


ONE_PLAN = {
    "length": lambda x: x.sum() / len(x),
    "zeros of a length": lambda x: np.zeros(len(x)) + x,
    "linspace": lambda x: np.linspace(0, 1, len(x)) * x,
    "eye": lambda x: np.eye(len(x)) @ x,
    "middle": lambda x: x[len(x) // 2] * x,
    "reshape": lambda x: np.concatenate([x, x]).reshape(len(x), 2),
    "table of differences": lambda x: x[np.abs(np.subtract.outer(*[np.arange(len(x))] * 2))],
    "tri": lambda x: np.tri(len(x), k=-1) @ x,
    "tri of columns": lambda x: np.tri(3, len(x), dtype=int) @ x,
    "diag": lambda x: np.diag(x) @ x,
    "windows": lambda x: (np.hanning(len(x)) + np.hamming(len(x)) + np.bartlett(len(x))) * x,
    "blackman": lambda x: np.blackman(x.shape[0]) * x,
    "fftfreq": lambda x: np.fft.fftfreq(len(x), 0.1) * np.abs(np.fft.fft(x)),
    "rfftfreq": lambda x: np.fft.rfftfreq(len(x)) * np.abs(np.fft.rfft(x)),
}


@in_one_test
@pytest.mark.parametrize("name", ONE_PLAN)
def test_functions_of_sizes_have_one_plan_for_all_sizes(name):
    f = jit(ONE_PLAN[name])
    for n in (4, 6, 9, 12, 15):
        x = np.random.default_rng(n).normal(size=n)
        for expected, actual in zip(
            np.atleast_1d(f.__wrapped__(x)), np.atleast_1d(f(x)), strict=True
        ):
            np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)

    assert f.counters["compiles"] == 2


GUARDED = {
    "order": lambda x: x if x.shape[0] > 5 else -x,
    "equal": lambda x: x if x.shape[0] == 5 else -x,
    "parity": lambda x: x[::2] if x.shape[0] % 2 == 0 else x,
    "shapes": lambda x: x if (x * 2).shape == x.shape else -x,
    "data": lambda x: x if x[0] > 0 else -x,
}


@pytest.mark.parametrize("name", GUARDED)
def test_a_comparison_of_a_size_is_a_guard(name):
    f = jit(GUARDED[name])
    for n in (3, 4, 5, 6, 7, 8, 9, 10, 11, 5, 4):
        x = np.arange(1.0, n + 1)
        assert_same(f.__wrapped__(x), f(x))

    assert f.counters["compiles"] <= 3


def test_a_slice_that_needs_a_longer_axis_has_a_plan_for_such_axes():
    f = jit(lambda x: x[:5].sum() * x)
    for n in (3, 8, 9, 12, 5, 4, 4):
        x = np.arange(1.0, n + 1)
        assert_same(f.__wrapped__(x), f(x))

    assert {"float64[3]", "float64[n0+5]", "float64[4]"} == {
        str(plan.spec) for plan in f.debug_state().plans
    }


def test_sizes_that_were_equal_once_may_differ_later():
    f = jit(lambda x, y: x.sum() * y)
    for n, m in ((3, 3), (4, 4), (5, 6), (6, 5), (2, 9)):
        assert_same(np.ones(n).sum() * np.ones(m), f(np.ones(n), np.ones(m)))


# ---- guards ----


def branching(x):
    return x + 1.0 if x.sum() > 0 else x - 1.0


def test_a_branch_always_taken_is_compiled_once():
    f = jit(branching)
    for _ in range(5):
        f(np.ones(3))

    assert compiles(f) == 1


def test_alternating_branches_use_both_plans():
    f = jit(branching)
    for i in range(6):
        x = np.full(3, (-1.0) ** i)
        assert_same(branching(x), f(x))

    assert (compiles(f), f.counters["misses"], f.counters["hits"]) == (2, 2, 4)


def test_the_value_of_an_integer_that_python_reads_selects_the_plan():
    f = jit(lambda x, n: sum(x * i for i in range(n)))

    assert [f(1.0, n) for n in (2, 3, 2, 3)] == [1.0, 3.0, 1.0, 3.0]
    assert compiles(f) == 2


# ---- calls ----


def test_arguments_and_results_may_be_nested():
    f = jit(lambda tree, *rest, scale, **more: {"a": tree["w"][0] * scale, "b": (rest, more["c"])})
    args = ({"w": [X, None], "n": "text"}, 1.0, X)
    for _ in range(2):
        found = f(*args, scale=2.0, c=X)
        assert_same(X * 2.0, found["a"])
        assert found["b"][0][0] == 1.0

    assert compiles(f) == 1


def test_jit_is_a_decorator_with_and_without_options():
    @jit
    def f(x):
        """Doc."""
        return x * 2.0

    @jit(static_argnums=1, optimize=False)
    def g(x, n):
        return x * n

    assert (f.__name__, f.__doc__, f(1.0), g(2.0, 3)) == ("f", "Doc.", 2.0, 6.0)


class Model:
    scale = 1.0

    def __init__(self):
        self.w, self.factor, self.count = np.ones(3), 2.0, np.zeros(())
        self.inner = {"b": np.ones(3)}

    @jit
    def apply(self, x):
        self.count = self.count + 1.0
        return self.w * x * self.factor + self.inner["b"]

    @jit(static_argnums=0)
    def fixed(self, x):
        return self.w * x

    @jit
    def grow(self, x):
        self.w += x
        self.inner["b"] = self.inner["b"] * 2.0

    @classmethod
    @jit
    def named(cls, x):
        return x * cls.scale

    def __call__(self, x):
        return self.w * x


class Other(Model):
    scale = 3.0


def test_attributes_of_an_object_are_arguments_of_its_jitted_method():
    model = Model()
    assert_same(X * 2.0 + 1.0, model.apply(X))
    model.w = model.w * 10.0
    assert_same(X * 20.0 + 1.0, model.apply(X))
    model.factor = 3.0
    assert_same(X * 30.0 + 1.0, model.apply(X))

    assert model.count == 3


def test_a_jitted_method_may_be_called_through_its_class():
    model = Model()

    assert_same(X * 2.0 + 1.0, Model.apply(model, X))


def test_with_an_unsupported_argument_the_function_runs_as_python():
    with pytest.warns(RuntimeWarning, match=r"argument y: numpy\.ma\.MaskedArray is not an array"):
        assert_same(X, jit(lambda x, y: x)(X, np.ma.array([1.0])))


def test_in_place_changes_of_a_method_reach_its_object():
    model = Model()
    w = model.w
    model.grow(X)
    model.grow(X)

    assert model.w is w
    assert_same(1.0 + X + X, w)
    assert_same(np.full(3, 4.0), model.inner["b"])


def test_objects_of_different_classes_do_not_share_plans():
    assert (Model.named(2.0), Other.named(2.0)) == (2.0, 6.0)


def test_a_plan_keeps_no_object_alive():
    model = Model()
    model.apply(X)
    gone = weakref.ref(model)
    w = weakref.ref(model.w)
    del model
    gc.collect()

    assert (gone(), w()) == (None, None)


@pytest.mark.parametrize("make", [lambda m: m.__call__, lambda m: m])
def test_bound_methods_and_callable_objects_can_be_jitted(make):
    model = Model()
    f = jit(make(model))
    assert_same(X, f(X))
    model.w = model.w + 1.0
    assert_same(X * 2.0, f(X))


def test_arrays_bound_by_a_partial_are_arguments():
    w = np.ones(3)
    f = jit(functools.partial(lambda w, x, n: w * x * n, w, n=2))
    assert_same(X * 2.0, f(X))
    w[:] = 5.0
    assert_same(X * 10.0, f(X))

    assert compiles(f) == 1


def test_a_program_can_be_jitted():
    f = jit(lt.trace(lambda x, y: x * y["a"], X, {"a": X}))

    assert_same(X * X, f(X, {"a": X}))


FIRST_OF_TWO = {
    "too many positional arguments": lambda x, y: x,
    "the program takes 2 arrays, found 3": lt.parse("lambda %0, %1 { return %0 }"),
}


@pytest.mark.parametrize("message, f", FIRST_OF_TWO.items(), ids=["f", "fn"])
def test_the_wrong_number_of_inputs_is_an_error_before_anything_runs(message, f):
    """[F2]"""
    with pytest.raises((TypeError, ShapeError), match=message):
        jit(f)(X, X, X)


def test_writes_into_arguments_reach_the_caller():
    def add(x, y):
        x += y
        return x.sum()

    f, x = jit(add), np.ones(3)

    assert [f(x, X), f(x, X)] == [6.0, 9.0]
    assert_same(np.array([1.0, 3.0, 5.0]), x)


def test_a_generator_argument_advances_as_without_jit():
    f = jit(lambda rng: rng.standard_normal(3))
    a, b = np.random.default_rng(0), np.random.default_rng(0)

    assert_same([b.standard_normal(3), b.standard_normal(3)], [f(a), f(a)])


def test_results_do_not_share_memory_with_constants_of_the_plan():
    f = jit(lambda x: (np.array([1.0, 2.0]), x * 2.0))
    f(X)[0][:] = 7.0

    assert_same(np.array([1.0, 2.0]), f(X)[0])


# ---- B5: inside traces and transforms ----


def test_inside_a_trace_the_function_is_recorded_instead_of_its_plan():
    """[B5]"""
    f = jit(lambda x: x * 2.0 + 0.0 * x)
    f(X)
    fn = lt.trace(lambda x: f(x) - 1.0, X)

    assert [bind.op.name for bind in fn.binds] == ["mul", "mul", "add", "sub"]
    assert f.counters["invocations"] == 1


def test_a_trace_records_the_branch_of_its_own_arguments():
    """[B5]: even if the plan took the other branch."""
    f = jit(branching)
    f(np.ones(3))

    assert_same(-np.ones(3) - 1.0, lt.trace(f, -np.ones(3))(-np.ones(3)))


def test_a_closure_jitted_inside_a_trace_lifts_its_free_values():
    fn = lt.trace(lambda x, y: jit(lambda z: z * x)(y), X, X)

    assert_same(X * X, fn(X, X))


def test_jit_and_transforms_compose():
    f = jit(lambda x: (x**3).sum())

    assert_same(3.0 * X**2, lt.grad(f)(X))
    assert_same(6.0 * X, jit(lt.grad(lambda x: jit(lt.grad(f))(x).sum()))(X))
    assert_same(3.0 * np.stack([X, X]) ** 2, jit(lt.vmap(lt.grad(f)))(np.stack([X, X])))


def test_a_jitted_function_may_call_itself():
    @jit
    def power(x, n):
        return x if n == 0 else x * power(x, n - 1)

    assert power(2.0, 3) == 16.0


def test_an_executor_called_while_its_tracing_is_paused_does_not_deadlock():
    def f(x):
        with lt.pause_tracing():
            if g.depth == 0:
                g.depth = 1
                g(np.ones(3))
        return x * 2.0

    g = jit(f)
    g.depth = 0

    assert_same(np.full(3, 2.0), g(np.ones(3)))


# ---- errors ----


def test_a_runtime_error_is_numpys_own_at_the_users_line():
    def inverse(x):
        return np.linalg.inv(x * 1.0)

    f = jit(inverse)
    f(np.eye(2))

    with pytest.raises(np.linalg.LinAlgError) as found:
        f(np.zeros((2, 2)))

    assert "inverse" in [entry.name for entry in found.traceback]
    assert found.value.__context__ is None


def test_an_error_of_a_run_keeps_no_argument_alive():
    """[C1]"""
    program = trace(lambda x, tree: np.linalg.inv(x) + tree["a"], np.eye(2), {"a": np.eye(2)})
    f, kept, gone = lt.compile(program), [], []

    def zeros():
        array = np.zeros((2, 2))
        gone.append(weakref.ref(array))
        return array

    def fail():
        try:
            f(zeros(), {"a": zeros()})
        except np.linalg.LinAlgError as error:
            kept.append(error)

    for _ in range(2):
        fail()
        f(np.eye(2), {"a": np.eye(2)})

    assert len(kept) == 2
    assert [ref() is None for ref in gone] == [True] * 4


def test_a_failed_compile_is_not_cached():
    """[F2]"""
    works = []

    def f(x):
        if not works:
            raise ValueError("not yet")
        return x * 2.0

    g = jit(f)
    for _ in range(2):
        with pytest.raises(ValueError, match="not yet"):
            g(X)
    works.append(True)

    assert_same(X * 2.0, g(X))
    assert (compiles(g), len(g.__letir_executor__.cache.entries)) == (1, 1)


# ---- the plan cache ----


def test_the_least_recently_used_plans_are_evicted():
    """[F2]"""
    f = jit(lambda x, n: x * n, static_argnums=1, max_plans=2)
    for n in (1, 2, 1, 3, 1):
        f(X, n)

    assert f.counters["evictions"] == 1
    assert sorted(
        entry.key.leaves[1].value for entry in f.__letir_executor__.cache.entries.values()
    ) == [1, 3]


def test_clear_frees_the_plans():
    f = jit(lambda x: x * 2.0)
    f(X)
    gone = weakref.ref(next(iter(f.__letir_executor__.cache.entries.values())).plans[0])
    f.clear()
    gc.collect()

    assert gone() is None
    assert_same(X * 2.0, f(X))
    assert compiles(f) == 2


def test_last_executed_graph_is_per_thread_and_set_after_success():
    """[F2]"""
    f, g = jit(np.linalg.inv), jit(lambda x: x * 2.0)
    f(np.eye(2))
    graph = last_executed_graph()
    with pytest.raises(np.linalg.LinAlgError):
        f(np.zeros((2, 2)))
    other = threading.Thread(target=g, args=(X,))
    other.start()
    other.join()

    assert last_executed_graph() is graph
    assert [bind.op.name for bind in graph.binds] == ["inv"]
    del f, graph
    gc.collect()
    assert last_executed_graph() is None


def test_compiles_are_logged_with_their_reason(caplog):
    f = jit(lambda x: x * 2.0)
    with caplog.at_level(logging.INFO, "letir.plan"):
        f(X)
        f(X.astype(np.float32))

    assert "first call" in caplog.messages[0]
    assert "x, the first argument, is float32[3], was float64[3]" in caplog.messages[1]


def test_a_copy_of_an_executor_is_the_executor():
    import copy
    import pickle

    assert copy.deepcopy({"f": picklable})["f"] is picklable
    assert pickle.loads(pickle.dumps(picklable)) is picklable


@jit
def picklable(x):
    return x


def scaled(by, x):
    return by * x


class Scale:
    def __init__(self, by):
        self.by = by

    def apply(self, x):
        return self.by * x

    @jit
    def decorated(self, x):
        return self.by * x


class HoldsItsExecutor(Scale):
    def __init__(self, by):
        super().__init__(by)
        self.compiled = jit(self.apply)


@pytest.mark.parametrize(
    "before",
    [
        jit(functools.partial(scaled, X), exact=True),
        jit(Scale(X).apply, exact=True),
        Scale(X).decorated,
        HoldsItsExecutor(X).compiled,
    ],
    ids=["partial", "method", "decorated method", "cycle"],
)
def test_executors_are_pickled_with_the_arrays_that_they_hold(before):
    import pickle

    after = pickle.loads(pickle.dumps(before))
    assert_same(X * 2, before(np.full(3, 2.0)))
    assert_same(X * 2, after(np.full(3, 2.0)))
    assert before.__letir_executor__.options == after.__letir_executor__.options


@pytest.mark.parametrize("options", [{}, {"exact": True}, {"donate": (0,)}], ids=str)
def test_a_compiled_program_is_pickled_with_its_options(options):
    import copy
    import pickle

    compiled = lt.compile(lt.trace(lambda x: np.tanh(x * 2) + x.sum(), X), **options)
    for same in (pickle.loads(pickle.dumps(compiled)), copy.deepcopy(compiled)):
        assert_same(compiled(X.copy()), same(X.copy()))
        assert (compiled.optimized, compiled.options) == (same.optimized, same.options)


KINDS = st.sampled_from([np.float64, np.float32, np.int64, np.complex128, np.bool_])
ARGUMENTS = st.one_of(
    st.builds(lambda kind, n: np.arange(n).astype(kind), KINDS, st.integers(0, 5)),
    st.builds(lambda kind, n: np.ones((n, 2), kind), KINDS, st.integers(1, 3)),
    st.builds(lambda kind: kind(1), KINDS),
    st.sampled_from([1.5, 2, True, None, -0.0, float("nan")]),
)


@settings(max_examples=100)
@given(st.lists(st.tuples(ARGUMENTS, ARGUMENTS), min_size=1, max_size=6))
def test_jit_agrees_with_the_function_for_all_arguments(calls):
    def f(x, y):
        if y is None:
            return -x if x is not None else 0.0
        z = (x if x is not None else 1.0) * y
        if np.ndim(z) and z.shape[-1] == 2:
            return z.sum()
        return np.concatenate([z, z]) if np.ndim(z) else z + 1

    g = jit(f)
    for x, y in calls:
        with np.errstate(all="ignore"):
            check_same_outcome(f, g, x, y)


def check_same_outcome(f, g, *args):
    try:
        expected = f(*args)
    except Exception as error:
        with pytest.raises((type(error), lt.errors.LetirError)):
            g(*args)
    else:
        assert_same(expected, g(*args))


def test_a_plan_of_symbolic_sizes_distinguishes_0d_arrays_from_scalars():
    def f(x, total):
        total = total.copy()
        total -= total
        return x * 2, total

    jitted = jit(f)

    kinds = [type(jitted(np.ones(n), np.array(1))[1]) for n in (2, 3, 4)]

    assert [np.ndarray] * 3 == kinds


def test_prints_before_a_failed_guard_are_not_repeated(capsys):
    """[C5]: when another plan continues."""

    def f(x):
        lt.debug.print("{}", x)
        y = x * 2.0
        if y > 0:
            lt.debug.print("more")
            return y
        return -y

    g = jit(f)
    for x in (1.0, -1.0, 1.0, -1.0, -1.0):
        g(x)

    assert capsys.readouterr().out.split() == ["1.0", "more", "-1.0", "1.0", "more", "-1.0", "-1.0"]


def test_a_donated_argument_is_updated_in_place():
    f = jit(lambda x, v: x.at[0].set(v), donate_argnums=0)
    x = np.zeros(5)
    found = f(x, 3.0)

    assert found is x
    assert_same(np.array([3.0, 0, 0, 0, 0]), found)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: (x.at[0].set(5.0), x * 2.0),
        lambda x, y: (x[1:], x.at[0].set(5.0)),
        lambda x, y: (x.at[0].set(5.0), y * 2.0),
        lambda x, y: x.at[0].set(5.0) if y[0] > 0 else x.at[1].set(5.0),
    ],
)
def test_a_donated_argument_with_other_uses_is_not_updated_in_place(f):
    """[C2]"""
    g = jit(f, donate_argnums=0)
    for y in (np.ones(3), -np.ones(3)):
        x = np.ones(3)
        expected = lt.trace(f, np.ones(3), y)(np.ones(3), y)
        assert_same(expected, g(x, y))

    x = np.ones(3)
    assert_same(lt.trace(f, x, x.copy())(x, x.copy()), g(x, x))


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@settings(max_examples=60)
@given(programs())
def test_a_compiled_program_agrees_with_its_evaluation(program):
    fn, args = program
    try:
        expected = lt.run_forward(fn, *args)
    except GuardError:
        return
    assert_same(expected, jit(fn, exact=True)(*args))
    assert_same(expected, lt.compile(fn, exact=True)(*args))


def test_device_arrays_have_their_own_plans(monkeypatch):
    """[F1]"""
    device = DeviceModule()
    for name, module in modules(device).items():
        monkeypatch.setitem(sys.modules, name, module)
    f = jit(lambda x: np.exp(x) * 2.0)
    expected = f(X)
    for _ in range(2):
        found = f(moved(X))

    assert isinstance(found, DeviceArray)
    assert_same(expected, found.host)
    assert compiles(f) == 2


def test_a_call_on_a_device_finds_its_plan_by_a_short_key(monkeypatch):
    """[F1] Its arrays need no full spec."""
    device = DeviceModule()
    for name, module in modules(device).items():
        monkeypatch.setitem(sys.modules, name, module)
    x = np.linspace(0.0, 1.0, 6).reshape(2, 3)
    f, expected = jit(lambda x, s: np.exp(x) * s), np.exp(x) * 3.0
    columns, elsewhere = DeviceArray(np.asfortranarray(x)), moved(x)
    elsewhere.device = SimpleNamespace(id=1)
    calls = [moved(x), columns, elsewhere]
    for x in calls:
        f(x, 2.0)
    monkeypatch.setattr(ArgumentSpec, "from_arguments", None)
    for x in calls:
        assert_same(expected, f(x, 3.0).host)

    assert compiles(f) == 3  # one for each device and memory order


def test_whatever_a_plan_raises_the_function_is_called_as_python():
    """Also where a handler is not in sight, as in C code."""

    class Row:
        def __init__(self, row, i):
            self.row, self.i = row, i

        @property
        def element(self):
            try:
                return self.row[self.i]
            except IndexError as error:
                raise AttributeError from error  # which getattr catches

    def f(row, i):
        return row.sum() + getattr(Row(row, i), "element", 100.0)

    jitted = jit(f)
    for i in (1, 7, 2, 8):
        assert_same(f(np.arange(3.0), i), jitted(np.arange(3.0), i))


def test_writes_of_a_failed_plan_are_dropped_when_the_function_is_called_as_python():
    def write(row, i):
        row[0] = row[0] + 5.0
        return row[i]

    f, expected, found = jit(write), np.zeros(3), np.zeros(3)
    for i in (1, 7, 2):
        for function, row in ((write, expected), (f, found)):
            if i == 7:
                with pytest.raises(IndexError):
                    function(row, i)
            else:
                function(row, i)

    assert_same(expected, found)


def test_of_two_operations_that_raise_the_first_does():
    def both(a, b):
        return np.linalg.cholesky(a).sum() + np.linalg.inv(b).sum()

    f = jit(both)
    for a, b, text in (
        (-np.eye(2), np.zeros((2, 2)), "positive definite"),
        (np.eye(2), np.zeros((2, 2)), "Singular"),
    ):
        with pytest.raises(np.linalg.LinAlgError, match=text):
            f(a, b)


def test_exact_keeps_an_unused_operation_that_may_raise():
    def unused(a):
        np.linalg.inv(a)
        return a.sum()

    assert_same(0.0, float(jit(unused)(np.zeros((2, 2)))))
    with pytest.raises(np.linalg.LinAlgError):
        jit(unused, exact=True)(np.zeros((2, 2)))
    with pytest.raises(np.linalg.LinAlgError):
        lt.compile(trace(unused, np.eye(2)), exact=True)(np.zeros((2, 2)))


def test_a_donated_array_is_not_read_again_after_an_error():
    f = jit(lambda a, b: (a + 1.0, np.linalg.inv(b)), donate_argnums=0)
    f(np.ones((2, 2)), np.eye(2))

    with pytest.raises(np.linalg.LinAlgError) as found:
        f(np.ones((2, 2)), np.zeros((2, 2)))

    assert "letir: in" in "".join(found.value.__notes__)


class Plain:
    """An object of arrays, numbers and strings."""

    def __init__(self):
        self.w, self.scale, self.mode = np.array([1.0, -2.0]), 0.0, "plus"

    @lt.jit
    def run(self, x):
        self.w = self.w + 1.0
        y = x * self.w + 1.0 / np.float64(np.copysign(1.0, self.scale))
        return y if self.mode == "plus" else -y


def test_states_of_plain_objects_are_told_apart():
    ours, pythons = Plain(), Plain()
    x = np.array([0.5, 2.0])
    changes = [
        *[("scale", value) for value in (0.0, -0.0, 1, True, np.nan, -1.0, np.float64(2.0), None)],
        *[
            ("mode", "minus"),
            ("w", np.array([1, 2])),
            ("w", np.ones(1)),
            ("other", [1.0]),
            ("w", x),
        ],
    ]
    for name, value in changes:
        for thing in (ours, pythons):
            setattr(thing, name, value)
        for _ in range(3):
            try:
                expected = Plain.run.__wrapped__(pythons, x)
            except TypeError:
                with pytest.raises(TypeError):
                    ours.run(x)
                continue
            assert_same(expected, ours.run(x))
            assert_same(pythons.w, ours.w)


def test_an_array_in_two_attributes_stays_one_array():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

        @lt.jit
        def run(self):
            self.a += 1.0
            return self.b * 2.0

    x = np.zeros(2)

    assert_same(np.zeros(2), Pair(np.zeros(2), np.zeros(2)).run())
    assert_same(np.full(2, 2.0), Pair(x, x).run())


def test_the_logger_reports_every_compile_with_its_reason(caplog):
    with caplog.at_level(logging.INFO, "letir.plan"):
        jit(np.sin)(np.ones(3))

    (record,) = caplog.records
    assert "sin: compiled for (float64[3])" in record.getMessage()
    assert ", 1 binds of 1, because " in record.getMessage()
