"""``jit`` of functions whose libraries raise because they get traced values [F2]."""

import heapq
import struct
import sys
import threading
import types
from contextlib import nullcontext, suppress
from ctypes import c_int

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same

X = np.array([1.0, 2.0])
LIBRARY = """
def times(x, n):
    try:
        descriptor(n)  # looks at the class in C
    except TypeError:
        raise ValueError("n must be an integer") from None
    return [x] * n

def refuse(x):
    calls.append(1)
    raise ValueError("never")

calls = []
"""


@pytest.fixture
def library(monkeypatch):
    """A module of another file that looks at the class of its arguments."""
    module = types.ModuleType("strict_library")
    module.descriptor = int.bit_count
    exec(compile(LIBRARY, "strict_library.py", "exec"), vars(module))
    monkeypatch.setitem(sys.modules, "strict_library", module)
    return module


def test_the_function_runs_as_python_if_only_its_recording_raises(library):
    fast = lt.jit(lambda x, n: np.sum(library.times(x, n), axis=0))

    with pytest.warns(RuntimeWarning, match=r"raises ValueError: n must be an integer"):
        assert_same(3 * X, fast(X, 3))
    for n in (2, 3, 4):
        assert_same(np.sum([X] * n, axis=0), fast(X, n))


def test_state_that_the_function_changed_before_is_restored(library):
    count = 0

    def program(x, n):
        nonlocal count
        count += 1
        return np.sum(library.times(x, n), axis=0) * count

    fast = lt.jit(program)
    with pytest.warns(RuntimeWarning, match="as Python"):
        assert_same(2 * X, fast(X, 2))
    assert_same(4 * X, fast(X, 2))
    assert count == 2


def test_a_function_that_reaches_many_objects_runs_as_python_too(library):
    """As functions of scikit-learn do; jit searches 1,000 objects before it records."""
    many = [[i] for i in range(3_000)]

    def program(x, n):
        return np.sum(library.times(x, n), axis=0) * len(many[5])

    with pytest.warns(RuntimeWarning, match=r"raises ValueError: n must be an integer"):
        assert_same(2 * X, lt.jit(program)(X, 2))


def test_a_function_that_another_compiler_has_compiled_runs_as_python():
    """Numba's functions and Cython's fused ones say so of all but ordinary arrays."""

    def compiled(x):
        try:
            memoryview(x)
        except TypeError:
            raise TypeError("can't unbox array from PyObject into native value.") from None
        return x * 2

    with pytest.warns(RuntimeWarning, match="written in C does not accept traced values"):
        assert_same(2 * X, lt.jit(compiled)(X))
    with pytest.raises(lt.errors.TraceError, match="can't unbox array"):
        lt.trace(compiled, X)


def test_numbers_for_c_code_of_a_function_that_reaches_many_objects_run_as_python():
    many = [[i] for i in range(3_000)]

    def program(x):
        return struct.unpack("d", struct.pack("d", x[0]))[0] * len(many[5])

    with pytest.warns(RuntimeWarning, match="cannot be recorded"):
        assert_same(program(X), lt.jit(program)(X))


def test_a_function_that_changes_one_of_many_objects_raises_the_librarys_error(library):
    many = [[i] for i in range(3_000)]

    def program(x, n):
        many[2_999].append(n)
        return np.sum(library.times(x, n), axis=0)

    with pytest.raises(ValueError, match="n must be an integer"):
        lt.jit(program)(X, 2)
    assert 2 == len(many[2_999])


def test_an_error_that_python_raises_too_is_its_own(library):
    fast = lt.jit(lambda x, wrong: library.refuse(x) if wrong else x * 2)

    for _ in range(3):
        with pytest.raises(ValueError, match="never"):
            fast(X, True)
    assert_same(2 * X, fast(X, False))
    assert fast.counters["compiles"] == 1


def test_an_error_of_the_functions_own_module_is_raised_at_once():
    calls = []

    def program(x):
        calls.append(len(calls))
        raise ValueError("own")

    with pytest.raises(ValueError, match="own"):
        lt.jit(program)(X)
    assert calls == [0]


def test_arrays_in_args_are_not_blamed_for_an_error_of_a_library(library):
    def program(*args):
        return np.sum(library.times(*args), axis=0)

    with pytest.warns(RuntimeWarning, match="n must be an integer"):
        assert_same(3 * X, lt.jit(program)(X, 3))


def test_a_function_that_raises_each_time_is_not_recorded_each_time():
    """It writes into its argument before it raises, so that Python has to call it as well."""
    recorded = (c_int * 1)()  # which no search for state finds

    def program(x, limit):
        recorded[0] += lt.is_tracing()
        x[0] += 1.0
        if x[0] > limit:
            raise ValueError("too large")
        return x.sum()

    fast, x = lt.jit(program), np.array([1.0, 2.0])
    for _ in range(100):
        with pytest.raises(ValueError, match="too large"):
            fast(x, 0.0)

    assert x[0] == 101.0
    assert 0 < recorded[0] < 15
    x[0] = 1.0
    for n in range(2, 102):  # a later call is recorded, and its plan remains
        assert_same(np.float64(n + 2.0), fast(x, 1000.0))
    assert fast.counters["compiles"] == 1


def zeros_around(vector, width, axis, options):
    """A function that NumPy calls with each row of a padded array, which letir does not record."""
    vector[: width[0]] = vector[-width[1] :] = 0.0


def test_the_function_runs_as_python_if_letir_alone_refuses_it():
    def program(x):
        return np.pad(x, 1, mode=zeros_around)

    fast = lt.jit(program)
    with pytest.warns(RuntimeWarning, match=r"as Python, without a plan: pad: a function as mode"):
        assert_same(program(np.arange(3.0)), fast(np.arange(3.0)))
    assert_same(program(np.ones(3)), fast(np.ones(3)))


def test_letirs_error_remains_where_python_raises_too():
    """It names both sides and the remedy; what the function did before happens once."""
    calls: list = []

    def program(x):
        calls.append(len(x))
        return x @ np.ones(5)

    with pytest.raises(lt.ShapeError, match="transpose one of them"):
        lt.jit(program)(X)
    assert calls == [2]


def test_a_value_of_an_outer_iterator_is_not_skipped():
    """A recording that fails could not put it back, so that Python makes the first call."""
    numbers = iter([1.0, 2.0])

    def program(x):
        return np.pad(x * next(numbers), 1, mode=zeros_around)

    jitted = lt.jit(program)

    assert [0.0, 0.0, 1.0, 2.0, 0.0] == jitted(np.arange(3.0)).tolist()
    assert [0.0, 0.0, 2.0, 4.0, 0.0] == jitted(np.arange(3.0)).tolist()


def test_what_a_function_keeps_before_it_raises_are_numbers():
    kept, queue = {"last": 0.0}, []

    def f(x):
        kept["last"] = x[0] * 2
        heapq.heappush(queue, x[1])
        if x[0] < 0:
            raise ValueError("negative")
        return x.sum()

    jitted = lt.jit(f)

    for x in (-X, X, -X):
        for call in (f, jitted):
            kept["last"], queue[:] = 0.0, []
            with pytest.raises(ValueError, match="negative") if x[0] < 0 else nullcontext():
                call(x)
            assert (kept, queue) == ({"last": 2 * x[0]}, [x[1]])
            assert {np.float64} == {type(kept["last"]), type(queue[0])}


def test_an_error_in_a_thread_is_that_of_the_recording(monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda args: None)  # it would print the error

    def f(x):
        results = []
        thread = threading.Thread(target=lambda: results.append(x * 2))
        thread.start()
        thread.join()
        return results[0]

    with pytest.raises(lt.TraceError, match="belongs to a trace of another thread"):
        lt.trace(f, X)
    with pytest.warns(RuntimeWarning, match="as Python, without a plan"):
        assert_same(2 * X, lt.jit(f)(X))


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (list, lambda box, n: box.append(n)),
        (dict, lambda box, n: box.update(n=n)),
        (lambda: ([1.0], ({},)), lambda box, n: box[1][0].update(n=n)),
        (lambda: np.ones(2), lambda box, n: box.put(0, n)),
    ],
    ids=["list", "dict", "inner dict", "array"],
)
def test_what_a_function_writes_into_arguments_before_it_raises_stays_written(make, change):
    def step(box, n):
        change(box, n)
        if n > 2:
            raise ValueError(n)
        return n * 2.0

    jitted = lt.jit(step)
    for n in (5, 5, 1, 5, 1):
        expected, found = make(), make()
        for function, box in ((step, expected), (jitted, found)):
            with suppress(ValueError):
                function(box, n)
        assert_same(expected, found)


def test_the_error_of_the_function_is_raised_after_several_recordings():
    kept = {"w": np.zeros(2)}

    def f(x, k):
        kept["w"] = kept["w"] - x
        scale = 2 if k & 1 else 1
        return kept["w"][0] * scale + float("2 m")

    with pytest.raises(ValueError, match="could not convert string to float"):
        lt.jit(f)(X, 3)
    assert_same(-X, kept["w"])


class Missing:
    """A module that could not be imported, as packages keep it: each use raises the error."""

    def __getattribute__(self, name):
        if name == "__class__":
            return type(None)
        raise ModuleNotFoundError("No module named 'meshes'")


missing = Missing()


def test_objects_whose_every_attribute_raises_are_not_used():
    def program(x):
        return struct.unpack("d", struct.pack("d", x[0]))[0] if missing is None else x * 2

    assert_same(2 * X, lt.jit(program)(X))
    assert_same(2 * X, lt.trace(program, X)(X))
    with pytest.raises(lt.errors.TraceError, match="cannot be recorded"):
        lt.trace(lambda x: [missing, struct.pack("d", x[0])][1] and x, X)
    assert_same(np.full(2, 2.0), lt.grad(lambda x: program(x).sum())(X))


class OutOfRange(Exception):
    def __init__(self, value):
        super().__init__("out of range")
        self.value = value


def refuse_sum(x):
    if x.sum() < 0:
        raise ValueError("negative", x.sum(), [x])
    return 2 * x


def refuse_by_attribute(x):
    if x.sum() < 0:
        raise OutOfRange({"first": x[0]})
    return 2 * x


def assert_sign(x):
    assert x[0] > 0, x
    return 2 * x


@pytest.mark.parametrize("f", [refuse_sum, refuse_by_attribute, assert_sign])
def test_errors_of_the_function_hold_arrays_and_numbers(f):
    fast = lt.jit(f)

    for _ in range(3):
        for g in (f, fast):
            with pytest.raises((ValueError, OutOfRange, AssertionError)) as caught:
                g(-X)
            values = [*caught.value.args, *vars(caught.value).values()]
            leaves = [leaf for value in values for leaf in lt.tree.leaves(value)]
            if g is f:
                expected = leaves
        assert len(expected) == len(leaves)
        for ours, theirs in zip(leaves, expected, strict=True):
            assert type(ours) is type(theirs)
            np.testing.assert_array_equal(ours, theirs)
        assert_same(2 * X, fast(X))
    assert fast.counters["compiles"] == 1


def windows(x, n):
    return np.lib.stride_tricks.as_strided(x, (2, n), (8, 8))


def chosen(x, n):
    return np.take(x, np.arange(2) * n)


@pytest.mark.parametrize(("f", "n", "kind"), [(windows, -1, ValueError), (chosen, 1.0, TypeError)])
def test_an_error_of_another_class_than_numpys_gives_way_to_it(f, n, kind):
    with pytest.raises(kind) as expected:
        f(X, n)

    for _ in range(2):
        with pytest.raises(kind) as caught:
            lt.jit(f)(X, n)
        assert type(caught.value) is type(expected.value)
        assert str(expected.value) in str(caught.value)


def test_a_type_error_of_numpy_in_a_plan_is_caught_as_without_jit():
    def unwrapped(z):
        try:
            return np.unwrap([z, z])[0]  # takes no complex numbers
        except TypeError:
            return z * 2

    fast = lt.jit(unwrapped)
    for _ in range(4):
        assert_same(2 + 4j, fast(1 + 2j))
    with pytest.raises(TypeError, match="remainder"):
        lt.jit(lambda z: np.unwrap([z, z])[0])(1 + 2j)
