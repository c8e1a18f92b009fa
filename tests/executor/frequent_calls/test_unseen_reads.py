"""``grad(f)`` without a new recording of ``f``: changes that no name of a global tells of."""

import builtins
import functools
import math
import types
import warnings
from collections import namedtuple

import numpy as np
import pytest

import letir as lt
from letir.transforms import repeated_programs
from tests.each_sample import in_one_test
from tests.executor.frequent_calls.each_transform import GRADIENTS, by_vjp, known_of

X = np.array([0.5, 1.5, 2.5])
STATE = {"scale": 2.0}


def by_state(x):
    return x * STATE["scale"]


@functools.wraps(np.mean)
def wrapped_mean(x):
    return by_state(x).mean()


OBJECTS = np.frompyfunc(by_state, 1, 1)


def makes_namespace(text, **names):
    """The globals in which the text has been executed, as those of a module of the user's."""
    space = {"np": np, "math": math, "__name__": "users_module", **names}
    exec(text, space)
    return space


@pytest.fixture(params=GRADIENTS)
def gradient(request):
    """A transform of functions to their gradients."""
    return GRADIENTS[request.param]


def grad_of(gradient, space, *args, fresh=False):
    """The gradient of ``f`` in a namespace, or the class of the error."""
    if fresh:
        repeated_programs._functions.clear()
    try:
        return np.asarray(gradient(space["f"])(*args)).tolist()
    except Exception as error:
        return type(error)


def warmed(gradient, text, *args, **names):
    """The namespace of ``f``, after calls that suffice to know whether ``f`` must run again."""
    space = makes_namespace(text, **names)
    for _ in range(9):
        grad_of(gradient, space, *args)
    return space


def set_scale(space):
    space["f"].scale = 3.0


def view_of_table(space):
    space["TABLE"] = space["TABLE"][:]


def set_state(space):
    STATE["scale"] = 5.0


def bind_other_parts(space):
    space["part"].__setstate__((math.pow, (3.0,), {}, {}))


def swap_code_of_helper(space):
    space["helper"].__code__ = (lambda x: x * 33.0).__code__


def set_doc(space):
    space["f"].__doc__ = "longer"


CHANGES = {
    "an attribute by getattr": (
        "def f(x): return (x * getattr(f, 'scale', 1.0)).sum()",
        set_scale,
    ),
    "an attribute by hasattr": (
        "def f(x): return x.sum() * (2.0 if hasattr(f, 'scale') else 1.0)",
        set_scale,
    ),
    "the owner of an array": (
        "TABLE = np.ones(3)\ndef f(x): return x.sum() * (2.0 if TABLE.base is None else 1.0)",
        view_of_table,
    ),
    "a function that wraps NumPy's": ("def f(x): return wrapped_mean(x)", set_state),
    "a ufunc of Python": (
        "TABLE = np.ones(3)\ndef f(x): return (x * objects(TABLE).astype(float)).sum()",
        set_state,
    ),
    "parts of a partial": ("def f(x): return x.sum() * part(2.0)", bind_other_parts),
    "the code of a helper": (
        "def helper(x): return x * 2\ndef f(x): return helper(x).sum()",
        swap_code_of_helper,
    ),
    "the text of documentation": (
        "def f(x):\n 'text'\n return x.sum() * len(f.__doc__)",
        set_doc,
    ),
    "a variable that is deleted": (
        "SCALE = 2.0\ndef f(x): return (x * SCALE).sum()",
        lambda space: space.pop("SCALE"),
    ),
    "a name that was a builtin's, deleted": (
        "def abs(x): return x * 2\ndef f(x): return abs(x).sum()",
        lambda space: space.pop("abs"),
    ),
}


@in_one_test
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_outside_is_noticed(gradient, name):
    text, change = CHANGES[name]
    STATE["scale"] = 2.0
    names = {"wrapped_mean": wrapped_mean, "objects": OBJECTS}
    space = warmed(gradient, text, X, part=functools.partial(math.pow, 2.0), **names)
    before = grad_of(gradient, space, X)
    change(space)

    found = grad_of(gradient, space, X)
    assert found == grad_of(gradient, space, X, fresh=True) != before


def test_keywords_that_are_added_to_a_partial_are_noticed(gradient):
    def scaled(x, by=1.0, more=1.0):
        return (x * by * more).sum()

    f = functools.partial(scaled, by=2.0)
    space = {"f": f}
    for _ in range(9):
        grad_of(gradient, space, X)
    f.keywords["more"] = 5.0

    assert grad_of(gradient, space, X) == [10.0] * 3


def test_a_builtin_that_is_replaced_is_noticed(gradient, monkeypatch):
    space = warmed(gradient, "def f(x): return abs(x[0]) * 3.0", X)
    monkeypatch.setattr(builtins, "abs", lambda x: x * 9.0)

    assert grad_of(gradient, space, X) == [27.0, 0.0, 0.0]


def test_a_replacement_of_numpys_function_may_have_state(gradient, monkeypatch):
    STATE["scale"] = 2.0
    monkeypatch.setattr(np, "sin", by_state)
    space = warmed(gradient, "def f(x): return np.sin(x).sum()", X)
    STATE["scale"] = 5.0

    assert grad_of(gradient, space, X) == [5.0] * 3


def test_a_function_of_numpy_by_its_name_may_be_replaced(gradient, monkeypatch):
    space = warmed(gradient, "def f(x, name): return getattr(np, name)(x).sum()", X, "exp")
    monkeypatch.setattr(np, "exp", lambda x: x * 9.0)

    assert grad_of(gradient, space, X, "exp") == [9.0] * 3


FUNCTIONS = {
    "a global of a global's": "SCALE = {0}\ndef inner(x): return x * SCALE\n",
    "a default": "def inner(x, by={0}): return x * by\n",
    "a global array": "TABLE = np.full(3, {0})\ndef inner(x): return x * TABLE\n",
    "another code": "def inner(x): return x * {0}\n",
}


@in_one_test
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("changed", ["f", "inner"])
def test_functions_among_the_arguments_may_change(gradient, name, changed):
    parts = FUNCTIONS[name]
    text = "def g(x): return inner(x) * 1.0\ndef f(x, g): return g(x).sum()\n"
    space = makes_namespace(parts.format(2.0) + text)
    argument = space["g" if changed == "f" else "inner"]
    for _ in range(9):
        assert grad_of(gradient, space, X, argument) == [2.0] * 3
    other = makes_namespace(parts.format(7.0))
    for key in ("SCALE", "TABLE"):
        if key in other:
            space[key] = other[key]
    space["inner"].__defaults__ = other["inner"].__defaults__
    space["inner"].__code__ = other["inner"].__code__

    assert grad_of(gradient, space, X, argument) == [7.0] * 3


@pytest.mark.parametrize("gradient", [lt.grad, by_vjp])
def test_new_functions_of_the_same_code_need_no_recording(gradient):
    space = makes_namespace("def f(x, g): return g(x).sum()\nmake = lambda: lambda x: x * 3.0\n")
    for _ in range(30):  # it is tried after 4, 7, 13 and 25 calls
        assert grad_of(gradient, space, X, space["make"]()) == [3.0] * 3
        (known,) = known_of(space["f"])
        if known.calls:
            break

    assert known.calls, (known.runs, known.attempts)
    assert known.results((X, space["make"]()), {}) is not None


def test_the_order_of_keys_matters(gradient):
    space = makes_namespace("def f(d): return sum(i * d[k].sum() for i, k in enumerate(d, 1))")
    for _ in range(9):
        assert gradient(space["f"])({"a": X, "b": X})["a"].tolist() == [1.0] * 3

    assert gradient(space["f"])({"b": X, "a": X})["a"].tolist() == [2.0] * 3


def test_an_objects_own_functions_may_change(gradient):
    class Pair(namedtuple("Pair", ["first", "second"])):
        def sum(self):
            return (self[0] * STATE["scale"]).sum()

    space = makes_namespace("def f(pair): return pair.sum()")
    for STATE["scale"] in (2.0,) * 9 + (5.0,):
        result = gradient(space["f"])(Pair(X, X))
        assert result[0].tolist() == [STATE["scale"]] * 3


def test_plain_named_tuples_need_no_recording(gradient):
    Pair = namedtuple("Pair", ["first", "second"])
    space = makes_namespace("def f(pair):\n a, b = pair\n return (a * b).sum()")
    for _ in range(9):
        gradient(space["f"])(Pair(X, X))

    (known,) = known_of(space["f"])
    assert known.calls


def test_an_argument_that_shares_memory_with_a_global_array_is_recorded(gradient):
    space = warmed(
        gradient, "TABLE = np.ones(3)\ndef f(x):\n x[0] = 5.0\n return (x * TABLE).sum()\n", X
    )
    table = space["TABLE"]

    for x in (table, table[:], table[::-1]):
        assert grad_of(gradient, space, x) is lt.errors.TraceError
    assert table.tolist() == [1.0] * 3
    view = np.arange(8.0)
    space["TABLE"] = view[::3]
    for _ in range(9):
        assert grad_of(gradient, space, X) == [0.0, 3.0, 6.0]
    assert grad_of(gradient, space, view[:3]) is lt.errors.TraceError


def test_warnings_of_a_recording_are_those_of_each_call(gradient):
    text = "TABLE = np.array([0.0, 1.0, 2.0])\ndef f(x): return (x * (np.log(TABLE) < 0)).sum()\n"
    with np.errstate(all="ignore"):
        space = warmed(gradient, text, X)
        before = grad_of(gradient, space, X)

    with np.errstate(divide="raise"):
        assert grad_of(gradient, space, X) is FloatingPointError
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert grad_of(gradient, space, X) == before
    assert "divide by zero" in str(caught[0].message)


TEXTS = ["str(TABLE)", "repr(TABLE)", "f'{TABLE}'", "'%s' % TABLE", "np.array2string(TABLE)"]


@in_one_test
@pytest.mark.parametrize("text", [*TEXTS, "'{}'.format(TABLE)"])
def test_texts_of_arrays_follow_the_options_for_printing(gradient, text):
    space = warmed(
        gradient, f"TABLE = np.array([1.23456789])\ndef f(x): return x.sum() * len({text})\n", X
    )
    before = grad_of(gradient, space, X)

    with np.printoptions(precision=2):
        assert grad_of(gradient, space, X) == grad_of(gradient, space, X, fresh=True) != before


def test_the_same_flags_are_set_in_each_call(gradient):
    text = "TABLE = np.ones(3)\ndef f(x):\n TABLE.setflags(write=False)\n return x.sum()\n"
    space = warmed(gradient, text, X)
    space["TABLE"].setflags(write=True)
    grad_of(gradient, space, X)

    assert not space["TABLE"].flags.writeable


def test_a_module_that_replaces_numpy_is_noticed(gradient):
    space = warmed(gradient, "def f(x): return np.linalg.det(np.outer(x, x) + np.eye(3))", X)
    space["np"] = types.SimpleNamespace(
        linalg=types.SimpleNamespace(det=np.sum), outer=np.outer, eye=np.zeros
    )

    assert grad_of(gradient, space, X) == grad_of(gradient, space, X, fresh=True)
