"""``grad(f)``, ``vjp(f, x)`` ... run ``f`` again unless a recording must give the same program."""

import builtins
import functools
import gc
import itertools
import math
import random
import sys
import threading
import time
import types
import weakref

import numpy as np
import pytest
from numpy.random import normal

import letir as lt
from letir.transforms import repeated_programs
from tests.each_sample import in_one_test
from tests.executor.frequent_calls.each_transform import GRADIENTS, TRANSFORMS, known_of

X = np.array([0.5, 1.5, 2.5, 3.0])
SCALE, WEIGHTS, TABLE = 2.0, np.linspace(-1.0, 1.0, 4), np.arange(12.0).reshape(3, 4) / 5
RNG, COUNTS, SETTINGS = np.random.default_rng(0), [0], {"power": 2}
MODE = "tanh"


def helper(x, by=3.0):
    return np.sin(x) * by


def filled(x):
    out = np.zeros(4)
    out[1:] = x[:3] * 2
    return (out * x).sum()


def value_of(module, x, power):
    return module.sum(x**power)


REPEATED = {
    "tanh": lambda x: np.tanh(x).sum(),
    "a global number": lambda x: (x * SCALE).sum(),
    "a global array": lambda x: (TABLE @ x * 2).sum() + WEIGHTS @ x,
    "a helper": lambda x: helper(x).sum() * helper(x[0], by=2.0),
    "a loop": lambda x: sum(x[i] ** i for i in range(len(x))),
    "pairs": lambda x: sum((b - a) ** 2 for a, b in itertools.pairwise(list(x))),
    "a choice by text": lambda x: np.tanh(x).sum() if MODE == "tanh" else x.sum(),
    "a buffer": filled,
    "linear algebra": lambda x: np.linalg.norm(np.outer(x, x) + np.eye(4)) + np.trace(np.diag(x)),
    "a partial": functools.partial(value_of, np, power=2),
    "math": lambda x: math.sqrt(x[0]) * math.exp(x[1]),
    "a division": lambda x: (1 / x).sum() + x[0] ** 0.5,
    "an integral": lambda x: np.trapezoid(x * np.interp(x, [0.0, 4.0], [1.0, 2.0])),
}


def runs_of(transformed, *args):
    """(the result, how often the transformed function itself ran)."""
    codes = []

    def note(frame, event, arg):
        if event == "call" and frame.f_code.co_filename == __file__:
            codes.append(frame.f_code)

    sys.setprofile(note)
    try:
        result = transformed(*args)
    finally:
        sys.setprofile(None)
    return result, len(codes)


def warmed(f, transform=lt.grad, x=X):
    """The transform of ``f`` after calls that suffice to know whether it must run again."""
    transformed = transform(f)
    for _ in range(6):
        transformed(x)
    return transformed


def anew(f):
    """A copy of a function, of which nothing is known."""
    if type(f) is functools.partial:
        return functools.partial(anew(f.func), *f.args, **f.keywords)
    return types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)


def outcome(transformed, x):
    """The bits of nested results, or the error."""
    try:
        results = transformed(x)
    except Exception as error:
        return type(error), str(error)
    results = results if isinstance(results, tuple) else (results,)
    arrays = [(type(r), np.asarray(r)) for r in results]
    return [(kind, array.dtype, array.shape, array.tobytes()) for kind, array in arrays]


INPUTS = [
    *(np.zeros(4), -X, X[::-1], np.full(4, np.nan), np.array([np.inf, 1e300, -0.0, 1e-320])),
    *(X.astype("float32"), X[:3], np.arange(4), np.ones((4, 4)), 2.0, [1.0, 2.0, 3.0, 4.0], X > 1),
]


@pytest.fixture(params=GRADIENTS)
def gradient(request):
    """A transform of functions to their gradients."""
    return GRADIENTS[request.param]


@in_one_test
@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_repeated_call_equals_a_recorded_one(name, transform):
    f, transform = REPEATED[name], TRANSFORMS[transform]
    transformed = warmed(f, transform)
    assert runs_of(transformed, X + 0.25)[1] == 0
    with np.errstate(all="ignore"):
        for x in INPUTS:
            assert outcome(transformed, x) == outcome(transform(anew(f)), x)


def captured():
    generator = np.random.default_rng(0)
    return lambda x: (x * generator.random(4)).sum()


def counting():
    count = 0

    def f(x):
        nonlocal count
        count += 1
        return (x * count).sum()

    return f


def storing():
    last = 0.0

    def f(x):
        nonlocal last
        last = 1.0
        return (x * x).sum()

    return f


def caught(x):
    try:
        return np.linalg.cholesky(np.diag(x)).sum()
    except np.linalg.LinAlgError:
        return x.sum()


def counted(x):
    COUNTS[0] += 1
    return x.sum()


class Model:
    factor = 2.0

    def loss(self, x):
        return (x * self.factor).sum()


def with_errstate(x):
    with np.errstate(divide="ignore"):
        return np.log(x).sum()


def with_default(x, cache=[]):  # noqa: B006  state between calls
    cache.append(1)
    return (x * len(cache)).sum()


RUN_AGAIN = {
    "a condition on values": lambda x: x.sum() if x[0] > 0 else (x * x).sum(),
    "a draw": lambda x: (x * np.random.normal(size=4)).sum(),
    "an imported draw": lambda x: (x * normal(size=4)).sum(),
    "a draw of a global generator": lambda x: (x * RNG.random(4)).sum(),
    "a draw of a captured generator": captured(),
    "Python's draw": lambda x: x.sum() * random.random(),
    "a new generator": lambda x: (x * np.random.default_rng(0).random(4)).sum(),
    "a clock": lambda x: x.sum() * time.time(),
    "a counter": counting(),
    "a store": storing(),
    "a counter in a list": counted,
    "an entry of a dict": lambda x: (x ** SETTINGS["power"]).sum(),
    "a method": Model().loss,
    "a handler": caught,
    "an error state": with_errstate,
    "printing": lambda x: print(end="") or x.sum(),
    "a mutable default": with_default,
    "an object": lambda x: x.sum() * Model.factor,
    "another derivative": lambda x: (lt.grad(np.sum)(x) * x).sum(),
    "a partial with a generator": functools.partial(lambda rng, x: x.sum() * rng.random(), RNG),
}


POWERS = {
    "a root": (lambda x: x**0.5, True),
    "a power of a variable": (lambda x: x**x, True),
    "a square": (lambda x: x**2 + x**2.0 + x**-3, False),
    "a power of two": (lambda x: 2.0**x, False),
    "a quotient": (lambda x: 1 / x + x // 3.0 + x % 2.0, False),
}


@in_one_test
@pytest.mark.parametrize("name", POWERS)
@pytest.mark.parametrize("transform", ["grad", "vjp", "linearize", "jvp", "a function by hvp"])
def test_a_power_of_a_number_that_may_become_complex_runs_in_each_call(name, transform):
    (f, runs), transform = POWERS[name], TRANSFORMS[transform]
    transformed = warmed(f, transform, x=1.5)

    assert runs_of(transformed, 2.5)[1] == runs
    for x in (-2.5, 0.0, -1.0, 3.0, 2, math.nan, math.inf):
        with np.errstate(all="ignore"):
            assert outcome(transformed, x) == outcome(transform(anew(f)), x)


@in_one_test
@pytest.mark.parametrize("name", RUN_AGAIN)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_function_with_a_path_or_state_of_its_own_runs_in_each_call(name, transform):
    transformed = TRANSFORMS[transform](RUN_AGAIN[name])

    for _ in range(18):  # under vmap, some raise an error in each call
        assert runs_of(functools.partial(outcome, transformed), X)[1] > 0


def test_second_derivatives_and_batches_of_derivatives_run_once():
    for transformed in (
        warmed(lambda x: lt_grad(x) @ x, lt.grad),
        warmed(lambda x: lt_batched(x).sum(), lt.grad),
        warmed(lt.grad(lambda x: (x**3).sum()), lt.jacobian),
    ):
        assert runs_of(transformed, X + 1)[1] == 0
    np.testing.assert_allclose(lt.hessian(lambda x: (x**3).sum())(X), np.diag(6 * X))


lt_grad, lt_batched = lt.grad(lambda x: np.sin(x).sum()), lt.vmap(lambda a: a**3)


def test_draws_differ_between_calls(gradient):
    for name in ("a draw", "an imported draw", "a draw of a global generator", "Python's draw"):
        transformed = warmed(RUN_AGAIN[name], gradient)

        assert len({transformed(X).tobytes() for _ in range(8)}) == 8


def test_what_a_function_reads_from_outside_may_change(gradient, monkeypatch):
    f = anew(REPEATED["a global array"])
    transformed = warmed(f, gradient)

    WEIGHTS[0] += 1  # in place
    try:
        assert outcome(transformed, X) == outcome(gradient(anew(f)), X)
    finally:
        WEIGHTS[0] -= 1
    for name, value in (("WEIGHTS", X.copy()), ("TABLE", np.ones((2, 4), "float32"))):
        monkeypatch.setitem(globals(), name, value)
        assert outcome(transformed, X) == outcome(gradient(anew(f)), X)


CHANGES = {
    "a global number": ("a global number", "SCALE", 3.5),
    "a text": ("a choice by text", "MODE", "sum"),
    "a helper": ("a helper", "helper", lambda x, by=1.0: x * by),
    "a builtin": ("a loop", "sum", lambda items: 7.0 * builtins.sum(items)),
    "a module": ("math", "math", types.SimpleNamespace(sqrt=np.sin, exp=np.cos)),
}


@in_one_test
@pytest.mark.parametrize("name", CHANGES)
def test_a_global_that_is_bound_to_something_else_is_noticed(gradient, name, monkeypatch):
    kind, variable, value = CHANGES[name]
    f = REPEATED[kind]
    transformed = warmed(f, gradient)
    before = outcome(transformed, X)
    with monkeypatch.context() as patch:
        patch.setitem(globals(), variable, value)

        assert outcome(transformed, X) == outcome(gradient(anew(f)), X) != before
    assert outcome(transformed, X) == before


def test_a_function_of_numpy_that_is_replaced_is_noticed(gradient, monkeypatch):
    transformed = warmed(lambda x: np.expm1(x).sum(), gradient)
    assert runs_of(transformed, X)[1] == 0
    monkeypatch.setattr(np, "expm1", np.sin)

    assert runs_of(transformed, X)[1] == 1


def test_code_and_defaults_that_are_replaced_are_noticed(gradient):
    """As IPython's autoreload does."""

    def scaled(x, by=2.0):
        return (x * by).sum()

    transformed = warmed(scaled, gradient)
    scaled.__defaults__ = (5.0,)
    np.testing.assert_array_equal(transformed(X), np.full(4, 5.0))
    scaled.__code__ = (lambda x, by: (x * x * by).sum()).__code__
    np.testing.assert_array_equal(transformed(X), 10.0 * X)


def with_mutable_default(x, scales=[2.0]):  # noqa: B006  changed by the test below
    return (x * scales[0]).sum()


def with_mutable_keyword(x, *, scales=[2.0]):  # noqa: B006  changed by the test below
    return (x * scales[0]).sum()


OUTER = types.ModuleType("outer")
OUTER.inner = types.ModuleType("inner")
OUTER.inner.factor = 2.0


@pytest.mark.parametrize(
    ("f", "change"),
    [
        (
            with_mutable_default,
            lambda value: with_mutable_default.__defaults__[0].__setitem__(0, value),
        ),
        (
            with_mutable_keyword,
            lambda value: with_mutable_keyword.__kwdefaults__["scales"].__setitem__(0, value),
        ),
        (lambda x: (x * Model.factor).sum(), lambda value: setattr(Model, "factor", value)),
        (
            lambda x: (x * OUTER.inner.factor).sum(),
            lambda value: setattr(OUTER.inner, "factor", value),
        ),
    ],
    ids=["default", "keyword", "attribute of a class", "attribute of an inner module"],
)
def test_what_a_default_a_class_or_an_inner_module_holds_may_change(gradient, f, change):
    transformed = warmed(f, gradient)

    change(5.0)
    try:
        np.testing.assert_array_equal(np.full(4, 5.0), transformed(X))
    finally:
        change(2.0)


def test_a_method_of_an_object_outside_is_called_each_time(gradient):
    seen = []
    note = seen.append

    def f(x):
        note(1)
        return (x * 2.0).sum()

    transformed = gradient(f)
    for _ in range(20):
        transformed(X)

    assert 20 == len(seen)


def test_a_captured_variable_that_changes_is_noticed(gradient):
    factor, weights = 2.0, np.ones(4)

    def f(x):
        return (x * factor * weights).sum()

    transformed = warmed(f, gradient)
    for factor in (3.0, 4.0):
        np.testing.assert_array_equal(transformed(X), np.full(4, factor))
    weights = np.zeros(4)
    np.testing.assert_array_equal(transformed(X), np.zeros(4))


def test_arrays_of_a_partial_may_change(gradient):
    weights = np.ones(4)
    transformed = warmed(functools.partial(lambda w, x: (w * x).sum(), weights), gradient)
    weights[:] = 3.0

    np.testing.assert_array_equal(transformed(X), np.full(4, 3.0))


def test_a_result_is_the_callers_own(gradient):
    transformed = warmed(lambda x: (x * WEIGHTS).sum(), gradient)
    transformed(X)[:] = 0.0

    np.testing.assert_array_equal(transformed(X), WEIGHTS)


def test_arguments_of_other_kinds_are_recorded():
    transformed = warmed(lambda x, y=None, **options: (x**2).sum() + len(options), x=X)

    assert outcome(functools.partial(transformed, y=3.0), X) == outcome(transformed, X)
    assert lt.grad(lambda x, y: (x * y).sum())(X, X).tolist() == X.tolist()


def test_a_function_with_attributes_runs_in_each_call(gradient):
    """``f.size`` may change, and no name tells it from the size of an array."""

    def scaled(x):
        return (x * scaled.size).sum()

    for scaled.size in (2.0, 3.0):
        np.testing.assert_array_equal(warmed(scaled, gradient)(X), np.full(4, scaled.size))


def test_many_arrays_are_one_test(gradient):
    layers = [np.full(2, float(n)) for n in range(60)]
    transformed = warmed(lambda layers: sum((w * w).sum() for w in layers), gradient, layers)

    assert runs_of(transformed, layers)[1] == 0
    assert runs_of(transformed, [*layers[:-1], layers[0]])[1] > 0  # one array at two places
    known = [known for known in repeated_programs._functions.values() if known.calls][-1]
    assert len(known.calls[0].match.__code__.co_code) < 20_000  # linear in the arrays


def test_arrays_that_share_memory_are_recorded(gradient):
    def f(x, y):
        x += 1
        return (x * y).sum()

    transformed = gradient(f)
    for _ in range(6):
        transformed(X.copy(), X.copy())
    both = X.copy()

    with pytest.raises(lt.LetirError):
        transformed(both, both)


def test_views_that_share_no_memory_need_no_recording(gradient):
    """Such as batches of a data set."""
    data = np.arange(24.0).reshape(2, 3, 4) / 7
    transformed = gradient(lambda w, x, y: ((x @ w) ** 2).sum() + y.sum())
    for k in (0, 1) * 4:
        transformed(X, data[k], data[1 - k, 0])

    assert runs_of(transformed, X, data[0], data[1, 1])[1] == 0
    np.testing.assert_allclose(
        transformed(X, data[0], data[1, 1]), 2 * data[0].T @ data[0] @ X, rtol=1e-14
    )
    for others in ((data[0], data[0, 0]), (data[0], X), (data[0, :, ::-1], data[0, 2])):
        assert runs_of(transformed, X, *others)[1] > 0


def test_an_argument_that_the_function_also_reads_is_the_same_array_in_each_call(gradient):
    def f(x, y):
        return (TABLE * x).sum() + (y * y).sum()

    transformed = gradient(f)
    for _ in range(6):
        transformed(TABLE, X)

    assert runs_of(transformed, TABLE, X)[1] == 0
    np.testing.assert_array_equal(transformed(TABLE, X), TABLE)
    assert runs_of(transformed, TABLE.copy(), X)[1] > 0
    assert runs_of(transformed, TABLE[:], X)[1] > 0


def test_calls_inside_of_other_recordings_do_not_count(gradient):
    factor = 2.0
    f = lambda x: (np.tanh(x) * factor).sum()  # noqa: E731
    for _ in range(300):
        lt.trace(gradient(f), X)

    assert runs_of(warmed(f, gradient), X)[1] == 0


def test_a_debugger_sees_the_function_run(gradient):
    transformed, lines = warmed(REPEATED["tanh"], gradient), []

    def tracer(frame, event, arg):
        if frame.f_code is REPEATED["tanh"].__code__:
            lines.append(event)

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        transformed(X)
    finally:
        sys.settrace(before)

    assert lines


def test_a_function_that_is_gone_is_forgotten(gradient):
    weights = np.ones(4)
    f = lambda x: (x * weights).sum()  # noqa: E731
    warmed(f, gradient)
    key = next(key for key, known in repeated_programs._functions.items() if known.of() is f)
    gone = weakref.ref(f)
    del f
    gc.collect()

    assert gone() is None
    assert key not in repeated_programs._functions


def test_new_functions_of_the_same_code_are_known(gradient):
    """Such as a lambda in a loop."""
    results = []
    for k in range(12):
        f = lambda x: (x * SCALE).sum()  # noqa: E731
        results.append(runs_of(gradient(f), X + k))

    assert [bool(runs) for _, runs in results[-4:]] == [False] * 4
    np.testing.assert_array_equal([result for result, _ in results], np.full((12, 4), SCALE))


def test_a_function_may_follow_the_first_of_its_code(gradient):
    make = lambda: lambda x: (x * x * SCALE).sum()  # noqa: E731
    first = make()
    warmed(first, gradient)
    gradient(make())(X)
    del first
    gc.collect()

    assert runs_of(gradient(make()), X)[1] == 0


def test_functions_of_the_same_code_may_differ_in_their_parts(gradient):
    makers = [
        lambda k: lambda x, k=k: (x * k).sum(),
        lambda k: lambda x: (x * k).sum(),
        lambda k: with_attribute(lambda x: x.sum(), k),
        in_namespace,
    ]
    for make in makers:
        for _ in range(6):
            for k in (2.0, 3.0):
                f = make(k)
                expected = 1.0 if vars(f) else k
                np.testing.assert_array_equal(gradient(f)(X), np.full(4, expected))


def with_attribute(f, k):
    f.k = k
    return f


FACTOR_CODE = compile("def f(x): return (x * K).sum()", __file__, "exec")


def in_namespace(k):
    """A function that reads ``k`` from globals of its own."""
    space = {"__name__": __name__, "K": k}
    exec(FACTOR_CODE, space)
    return types.FunctionType(FACTOR_CODE.co_consts[0], space)


def test_a_function_is_forgotten_though_its_code_is_kept(gradient):
    """letir keeps the code of recorded functions, to find lines."""
    f = lambda x: (x * WEIGHTS).sum()  # noqa: E731
    code = f.__code__
    for _ in range(6):
        gradient(f)(X)
    assert any(known.of() is code for known in repeated_programs._functions.values())
    del f
    gc.collect()

    assert not any(known.of() is code for known in repeated_programs._functions.values())


def test_a_function_whose_reads_change_in_each_call_stops_being_tested(gradient):
    factor = 1.0
    f = lambda x: (x * factor).sum()  # noqa: E731
    transformed = gradient(f)
    for n in range(300):
        factor = float(n)
        np.testing.assert_array_equal(transformed(X), np.full(4, factor))

    (known,) = known_of(f)
    assert known.attempts == repeated_programs._MAX_ATTEMPTS
    assert len(known.calls) <= known.attempts


def test_threads_share_what_is_known(gradient):
    f = REPEATED["a global array"]
    transformed, expected = gradient(f), gradient(anew(f))(X)
    found = []

    def work():
        found.extend(transformed(X + n - n) for n in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 200
    for result in found:
        np.testing.assert_allclose(result, expected, rtol=1e-15)
