"""``trace(...)``: ordinary source with np.zeros and np.array is recorded."""

import functools
import importlib
import math
import subprocess
import sys
import threading
from types import ModuleType

import numpy
import numpy as np
import pytest
from numpy import array as arr
from numpy import zeros

import letir as lt
import letir.numpy as lnp
from letir.ast import LATE_BOUND
from letir.errors import TraceError
from letir.testing import assert_same
from letir.tracing import stand_ins
from letir.tracing.source_locations import is_letir_file
from tests.each_sample import in_one_test

T, U = 2.0, 5.0
calls = 0
ACTIVATIONS = {"tanh": np.tanh, "sin": np.sin}


def buffer(t):
    out = np.zeros(3)
    out[1:] = np.array([t, 2 * t])
    return out


def by_name(t):
    out = zeros(2)
    out[0] = t
    return out + arr([t, 1.0])


def by_module(t):
    return numpy.full(2, t)


def of_another(t):
    return buffer(t) * 2


def importing(t):
    import numpy as onp
    from numpy import full
    from numpy.linalg import norm

    return onp.array([t, 1.0]) + full(2, t) + norm(full(2, t)) + norm([t, 2 * t])


def nested(t):
    def inner(u):
        return np.array([u, t])

    return inner(t) + (lambda u: np.array([u, u]))(t) + sum(np.array([u, u]) for u in [t, t])


def with_defaults(t, make=np.zeros, *, fill=np.full):
    out = make(2)
    out[0] = t
    return out + fill(2, t)


def power(t, n):
    return np.array([t, t]) if n == 0 else power(t, n - 1) * t


def counted(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args) + np.array([args[0]] * 3)

    return wrapper


decorated = counted(buffer)


def joined(t):
    return np.r_[t, 0:2, 1.0], np.c_[np.array([t, t]), [1, 2]]


def listed(t):
    return np.mean([t, 2 * t]), np.max([t, 1.0]), np.sum([t, t])


def by_globals(t):
    found = globals()["np"].array([t, t])
    return found if "buffer" in globals() and len(globals()) > 3 else t


class Model:
    """A model whose methods call each other."""

    scale = 2.0

    def __init__(self, rate):
        self.rate = rate

    def step(self, t):
        self.seen = True
        return self.made(t) * self.rate + self.constant(t) + self.named(t) + self.width

    def made(self, t):
        out = np.zeros(2)
        out[0] = t
        return out

    @staticmethod
    def constant(t):
        return np.array([t, t])

    @classmethod
    def named(cls, t):
        return np.full(2, t * cls.scale)

    @property
    def width(self):
        return np.ones(2) * self.rate

    def __call__(self, t):
        return super().__init__() or self.step(t)


class Wide(Model):
    def made(self, t):
        return super().made(t * 1.0) if False else np.array([t, t])


def closure():
    import numpy as onp

    count = 0

    def twice(t):
        return onp.array([t, t]) * 2

    def program(t):
        nonlocal count
        count += 1
        return twice(t) + onp.full(2, t) + count * 0

    return program


PROGRAMS = {
    "np": buffer,
    "a name": by_name,
    "numpy": by_module,
    "a function of the module": of_another,
    "an import inside": importing,
    "nested functions": nested,
    "defaults": with_defaults,
    "a recursive function": functools.partial(power, n=3),
    "a decorated function": decorated,
    "a partial": functools.partial(with_defaults, fill=np.full),
    "a lambda": lambda t: np.array([t, t]),
    "a closure": closure(),
    "r_ and c_": joined,
    "lists": listed,
    "globals": by_globals,
    "a method": Model(3.0).step,
    "a method of a subclass": Wide(3.0).step,
    "a static method": Model.constant,
    "a class method": Model.named,
    "a callable object": Model(3.0),
    "a comprehension": lambda t: np.array([[i * t for i in range(2)] for _ in range(2)]),
    "a NumPy function": np.sin,
    "a function written in NumPy": np.mean,
}


@in_one_test
@pytest.mark.parametrize("name", PROGRAMS)
def test_numpys_creation_functions_are_recorded(name):
    f = PROGRAMS[name]

    assert_same(f(U), lt.trace(f, T)(U))


def test_without_interception_the_error_says_what_to_do():
    for f in (buffer, by_module):
        with pytest.raises(TraceError, match="ordinary array"):
            lt.trace(f, T, intercept=False)


def test_the_users_module_and_function_are_not_changed():
    code, cells, module = buffer.__code__, PROGRAMS["a closure"].__closure__, dict(globals())

    lt.trace(of_another, T)
    lt.trace(PROGRAMS["a closure"], T)

    assert code is buffer.__code__
    assert cells is PROGRAMS["a closure"].__closure__
    assert module == dict(globals())
    assert type(sys.modules[__name__].__dict__) is dict


def count_calls(t):
    global calls  # noqa: PLW0603
    calls += 1
    seen = calls
    calls += 1
    return np.array([t, t]), seen == calls - 1


def test_a_recorded_function_writes_its_globals():
    before = calls

    _, is_read = lt.trace(count_calls, T)(T)

    assert before + 2 == calls
    assert is_read


def failing(t):
    global calls  # noqa: PLW0603
    calls += 1
    raise KeyError(t)


def test_a_global_is_written_also_if_the_function_fails():
    before = calls

    with pytest.raises(KeyError):
        lt.trace(failing, T)

    assert before + 1 == calls
    assert not lt.is_tracing()


def keep_a_function(t):
    global kept  # noqa: PLW0603
    kept = buffer
    return np.array([t, t])


def test_values_written_into_a_global_are_the_users_own():
    lt.trace(keep_a_function, T)

    assert buffer is kept


def test_a_variable_of_the_enclosing_function_is_written():
    program = closure()

    lt.trace(program, T)

    assert (
        1
        == dict(zip(program.__code__.co_freevars, program.__closure__, strict=True))[
            "count"
        ].cell_contents
    )


def test_attributes_set_by_a_method_are_set_on_the_original_object():
    model = Model(3.0)

    lt.trace(model.step, T)

    assert vars(model) == {"rate": 3.0, "seen": True}
    assert type(model) is Model


def chosen(t, activation):
    return np.array([t, 0.0]) if activation is np.tanh else activation(np.array([t, t]))


def test_numpy_functions_passed_as_arguments_stay_the_same_objects():
    for activation in (np.tanh, np.sin):
        f = lt.trace(chosen, T, activation, static_argnums=1)

        assert_same(chosen(U, activation), f(U, activation))


def looked_up(t, name):
    return ACTIVATIONS[name](np.array([t, t])), ACTIVATIONS[name] == np.tanh


def test_numpys_functions_in_containers_are_equal_to_themselves():
    for name in ACTIVATIONS:
        assert_same(looked_up(U, name), lt.trace(looked_up, T, name)(U, name))


def test_recorded_makers_keep_the_users_source_lines():
    f = lt.trace(buffer, T)

    first = buffer.__code__.co_firstlineno
    assert {first + 1, first + 2, first + 3} >= {bind.source.line for bind in f.binds}
    assert {__file__} == {bind.source.file for bind in f.binds}


def test_other_threads_still_see_numpy():
    seen, started, done = [], threading.Event(), threading.Event()

    def other():
        started.wait()
        seen.append(type(buffer(T)))
        done.set()

    def program(t):
        started.set()
        done.wait()
        return buffer(t)

    thread = threading.Thread(target=other)
    thread.start()
    f = lt.trace(program, T)
    thread.join()

    assert [np.ndarray] == seen
    assert_same(buffer(U), f(U))


def test_arrays_that_the_function_makes_have_derivatives():
    f = lt.trace(lambda t: (buffer(t) ** 2).sum(), T)

    assert_same(np.float64(50.0), lt.grad(f)(U))


def test_an_inner_trace_records_too():
    """[B3]"""

    def program(t):
        return np.array([t, lt.grad(lambda u: (buffer(u) ** 2).sum())(t)])

    assert_same(np.array([5.0, 50.0]), lt.trace(program, T)(U))


def test_a_namespace_knows_its_functions():
    assert lnp.tanh == np.tanh
    assert hash(lnp.tanh) == hash(np.tanh)
    assert lnp.tanh != np.sin
    assert {np.tanh: 1}[lnp.tanh] == 1


def test_an_option_that_is_a_parameter_is_refused():
    with pytest.raises(TraceError, match="'intercept' is an option of trace"):
        lt.trace(lambda x, intercept: x, T, intercept=1.0)


MODULE = """
from numpy import *
from . import tools

def program(t):
    from .tools import base
    out = zeros(2)
    out[:1] = array([t]) + base() + tools.base()
    assert __name__ == "hazard_package.module" and __package__ == "hazard_package"
    return out * pi

def rows(t):
    def made():
        for i in range(3):
            row = zeros(2)
            row[0] = t * i
            yield row
    return stack(list(made()))
"""


def test_a_module_of_a_package_that_imports_all_of_numpy(tmp_path, monkeypatch):
    package = tmp_path / "hazard_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tools.py").write_text("def base():\n    return 1.0\n")
    (package / "module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("hazard_package.module")

    for f in (module.program, module.rows):
        assert_same(f(U), lt.trace(f, T, check=True)(U))


HELPERS = """
import math
import numpy as np
from math import sin
from numpy import zeros

TABLE = {"make": lambda t: filled(t)}

def filled(t):
    out = zeros(2)
    out[0] = sin(t) + math.cos(t)
    return out

class Layer:
    def __init__(self):
        self.bias = np.ones(2)
    def __call__(self, t):
        out = np.empty(2)
        out[:] = t * self.bias
        return out
"""


@pytest.fixture
def helpers(tmp_path, monkeypatch):
    (tmp_path / "hazard_helpers.py").write_text(HELPERS)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("hazard_helpers")
    del sys.modules["hazard_helpers"]
    lt.trace(buffer, T)  # forgets the module, which the next test imports anew


def test_functions_of_other_modules_in_objects_and_containers_record(helpers):
    layer = helpers.Layer()
    programs = [
        helpers.filled,
        layer,
        lambda t: helpers.TABLE["make"](t) + layer(t),
        lambda t: [h(t) for h in (helpers.filled, layer)],
        lambda t: functools.reduce(lambda y, h: y + h(t), [helpers.filled, layer], np.zeros(2)),
    ]
    for f in programs:
        assert_same(f(U), lt.trace(f, T)(U))
        assert_same(f(U), lt.jit(f)(U))


def test_a_module_that_is_imported_while_recording_has_numpys_functions_after(helpers, tmp_path):
    source = (tmp_path / "hazard_helpers.py").read_text()
    (tmp_path / "hazard_late.py").write_text(source)

    def program(t):
        return importlib.import_module("hazard_late").filled(t)

    try:
        f = lt.trace(program, T)
        late = sys.modules["hazard_late"]
        assert np.zeros is late.zeros
        assert math.sin is late.sin
        assert_same(program(U), f(U))
    finally:
        sys.modules.pop("hazard_late", None)


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_nothing_is_left_behind_by_an_error_or_an_interrupt(helpers, error):
    def program(t):
        buffer(t)
        raise error

    before = dict(vars(np)), dict(vars(helpers)), dict(globals())
    with pytest.raises(error):
        lt.trace(program, T)

    assert before == (dict(vars(np)), dict(vars(helpers)), dict(globals()))
    assert type(math) is type(np) is type(np.linalg) is type(sys)
    assert np.ndarray is type(buffer(T))


@pytest.mark.parametrize(
    ("name", "value"),
    [("zeros", listed), ("zeros", np.arange(2)), ("zeros", None), ("float", complex)],
)
def test_a_name_that_is_rebound_while_recording_keeps_its_value(helpers, name, value):
    """Those of other names and modules are restored."""

    def program(t):
        if value is None:
            del helpers.zeros
        else:
            setattr(helpers, name, value)
        return buffer(t)

    helpers.same = eval("lambda x: float(x)", vars(helpers))
    before, own = dict(vars(helpers)), dict(globals())
    lt.trace(program, T)
    after = dict(vars(helpers))

    assert after.pop(name, None) is value
    before.pop(name, None)
    assert before == after
    assert own == dict(globals())


def test_a_name_that_is_rebound_between_recordings_keeps_its_value(helpers):
    helpers.same = eval("lambda x: float(x)", vars(helpers))
    lt.trace(buffer, T)
    del helpers.TABLE
    helpers.float = complex
    seen = []

    lt.trace(lambda t: seen.append(helpers.float) or buffer(t), T)

    assert seen == [complex]
    assert helpers.float is complex


@pytest.mark.parametrize(
    ("function", "argument"),
    [(np.cumsum, T), (math.floor, 2.5), (np.full, 3), (np.linalg.inv, np.eye(2) + 1)],
)
def test_a_name_may_be_rebound_to_another_library_function(helpers, function, argument):
    """The module has been searched, and has no new name since."""
    exec("act = None\ndef call(*args): return act(*args)", vars(helpers))
    args = (2, argument) if function is np.full else (argument,)
    helpers.act = np.tanh
    lt.trace(helpers.call, 0.5)
    helpers.act = function

    assert_same(function(*args), lt.trace(helpers.call, *args)(*args))
    assert helpers.act is function


def test_nested_recordings_and_other_threads_leave_nothing_behind():
    def program(t):
        return buffer(t).sum()

    def work():
        for _ in range(20):
            assert 3.0 == lt.grad(lambda t: lt.grad(program)(t) * t)(T)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert type(np) is type(sys)
    assert np.ndarray is type(buffer(T))


def test_a_thread_that_the_function_starts_computes_with_numpy():
    kinds = []

    def program(t):
        thread = threading.Thread(target=lambda: kinds.append(type(buffer(1.0))))
        thread.start()
        thread.join()
        return buffer(t)

    assert_same(buffer(U), lt.trace(program, T)(U))
    assert [np.ndarray] == kinds


def test_code_in_c_gets_ordinary_arrays():
    """NumPy's generators call numpy.empty themselves, and write into its memory."""

    def program(t):
        draws = np.random.default_rng(0).normal(size=3)
        chosen = np.random.default_rng(0).permutation(3)
        return t * draws.sum() + chosen[0]

    lt.trace(program, T)


def test_a_program_that_a_user_executes_records():
    space = {}
    exec("from numpy import zeros\ndef f(t):\n    a = zeros(2)\n    a[1] = t\n    return a", space)

    assert_same(space["f"](U), lt.trace(space["f"], T)(U))
    assert np.zeros is space["zeros"]


def test_transforms_record_arrays_that_the_function_makes():
    def program(t):
        return buffer(t).sum()

    assert (
        3.0
        == lt.grad(program)(T)
        == lt.jit(lt.grad(program))(T)
        == lt.jvp(program, (T,), (1.0,))[1]
    )
    assert_same(np.array([6.0, 15.0]), lt.vmap(program)(np.array([2.0, 5.0])))
    assert_same(buffer(U), lt.checkpoint(buffer)(U))
    assert_same(
        np.stack([buffer(U)] * 2), lt.scan(lambda c, _: (c, buffer(c)), U, None, length=2)[1]
    )


def test_functions_that_are_compared_with_numpys_are_the_same():
    def program(t, reduce=np.mean):
        return reduce([t, t]) if reduce is np.mean and reduce is not np.zeros else -t

    assert_same(program(U), lt.trace(program, T)(U))


def test_modules_record_after_any_number_of_executed_programs(helpers, monkeypatch):
    monkeypatch.setattr("letir.tracing.stand_ins._MAX_KEPT_DICTS", 8)
    for _ in range(20):
        space = {"helpers": helpers}
        exec("def f(t): return helpers.filled(t)", space)
        assert_same(space["f"](U), lt.trace(space["f"], T)(U))


def seeded(x, seed):
    return x * np.random.default_rng(seed).random(3) + np.random.default_rng([seed, 1]).random(3)


def seeded_globally(x, seed):
    np.random.seed(seed)
    return x * np.random.rand(3)


@pytest.mark.parametrize("f", [seeded, seeded_globally])
def test_a_traced_seed_makes_a_generator(f):
    x, fast = np.ones(3), lt.jit(f)

    for seed in (3, 4, 3):
        np.testing.assert_array_equal(f(x, seed), fast(x, seed))
        expected = f(x + 1, seed) - f(x, seed)
        gradient = lt.grad(lambda x, s: f(x, s).sum())(x, seed)
        np.testing.assert_allclose(expected, gradient, rtol=1e-12)


def test_a_trace_holds_for_its_seed():
    fn = lt.trace(seeded, np.ones(3), 3)

    np.testing.assert_array_equal(seeded(np.zeros(3), 3), fn(np.zeros(3), 3))
    with pytest.raises(lt.GuardError):
        fn(np.ones(3), 4)


def test_numpys_scalar_classes_convert_traced_values_and_stay_classes():
    def program(t, n, x):
        half = np.float32(t)
        facts = isinstance(half, np.float32), x.dtype.type is np.float64, type(x[0]) is np.float64
        return np.float64(t) * 2, half, np.int64(n) + 1, np.float64(x), np.float64(3) + t, facts

    x = np.arange(3.0)
    assert_same(program(U, 4, x), lt.trace(program, T, 3, np.ones(3))(U, 4, x))
    assert 4.0 == lt.grad(lambda t: np.float64(t) ** 2)(T)


def in_a_variable(s):
    row = [s, 2.0 * s]
    return np.exp(row)


LISTS = {
    "a list": lambda s: np.exp([s, 2.0 * s]),
    "two lists": lambda s: np.add([s, 1.0], [2.0, s]),
    "a comprehension": lambda s: np.sin([k * s for k in range(3)]).sum(),
    "nested lists": lambda s: np.abs([[s, 1.0], [2.0, s]]),
    "a number": lambda s: np.exp([s, 1.0])[0] * np.exp(s) * np.exp([1.0, 2.0]).sum(),
    "a variable": in_a_variable,
    "other functions": lambda s: (np.interp(s, [0.0, 9.0], [1.0, s]), np.clip([s, 2.0], 0.0, 2.0)),
    "a later list": lambda s: np.where([True, False], [s, 1.0], [2.0, s]),
    "shapes": lambda s: (np.reshape([s, 1.0], (2, 1)), np.cross([s, 1.0, 2.0], [1.0, s, 0.0])),
    "Fourier": lambda s: np.fft.fft([s, 2.0, 1.0, s]).real,
    "indices": lambda s: (np.take([s, 1.0], [1, 0]), np.insert([s, 1.0], 1, 2 * s)),
    "in a nested function": lambda s: (lambda t: np.tanh([t, s]))(2 * s),
}


@pytest.mark.parametrize("f", LISTS.values(), ids=LISTS)
def test_functions_take_lists_that_the_function_writes(f):
    assert_same(f(2.5), lt.trace(f, 1.5)(2.5))
    assert type(np.exp) is np.ufunc


def length(values):
    return np.sqrt(np.square(values).sum())


@pytest.mark.parametrize("wrap", [list, tuple, lambda x: {"w": [list(x)]}])
def test_functions_take_arguments_that_are_lists(wrap):
    def f(x):
        x = x["w"][0] if isinstance(x, dict) else x
        return np.maximum(x, 0.5), np.hypot(2, x).sum() + length(x), np.round(x, 1), np.dot(x, x)

    x, y = wrap([1.25, -2.0, 3.0]), wrap([0.25, 7.0, -1.0])

    assert_same(f(y), lt.trace(f, x)(y))
    assert_same(f(y), lt.jit(f)(y))
    assert type(np.maximum) is np.ufunc


def test_ufuncs_have_stand_ins_only_where_they_are_called():
    def f(s):
        return np.exp([s]), functools.reduce(np.maximum, [s, 2 * s]), np.add.reduce([1, 2])

    assert_same(f(2.5), lt.trace(f, 1.5)(2.5))


def test_modules_are_looked_through_once_however_many_there_are(monkeypatch):
    for n in range(1100):
        monkeypatch.setitem(sys.modules, f"a_users_module_{n}", ModuleType(f"a_users_module_{n}"))
    lt.trace(buffer, T)
    looked_at: list[dict] = []

    def looked(space):
        looked_at.append(space)
        return {}

    monkeypatch.setitem(LATE_BOUND, "python_stand_ins", looked)
    lt.trace(buffer, T)
    assert not looked_at


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (np.mean, ([1.0, 2.0],)),
        (np.exp, ([1.0, 2.0],)),
        (np.linalg.norm, ([3.0, 4.0],)),
        (functools.partial(np.append, axis=0), ([[1.0, 2.0]], [[3.0, 4.0]])),
        (math.hypot, (3.0, 4.0)),
    ],
)
def test_functions_of_numpy_and_math_are_traced_themselves(f, args):
    other = [np.multiply(3.0, arg).tolist() for arg in args]
    assert_same(f(*other), lt.trace(f, *args)(*other))
    assert_same(f(*other), lt.jit(f)(*other))


def test_functions_of_numpy_and_math_are_differentiated_themselves():
    assert lt.grad(np.mean)([1.0, 3.0]) == [0.5, 0.5]
    np.testing.assert_allclose(lt.grad(np.linalg.norm)([3.0, 4.0]), [0.6, 0.8])
    assert lt.grad(math.hypot, argnums=1)(3.0, 4.0) == 0.8


def test_a_thread_that_imports_during_a_recording_goes_through_all_finders():
    finders = []

    def f(x):
        finders.extend([list(sys.meta_path), iter(sys.meta_path)])
        next(finders[1])  # as far as an import in another thread may be
        return x * 2.0

    lt.trace(f, np.ones(2))

    assert [*finders[0][:1], *finders[1]] == finders[0]
    assert sys.meta_path == finders[0][1:]


def test_a_library_that_is_first_imported_while_recording_has_stand_ins():
    code = """
import sys
import numpy as np
import letir as lt

def f(x):
    from scipy.stats import norm
    return norm.cdf(x)

def g(x):
    import statistics
    return statistics.mean(x.tolist())

finders = list(sys.meta_path)
print([lt.trace(h, np.ones(2)).binds[0].op.name for h in (f, g)], sys.meta_path == finders)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )

    assert done.stdout.strip() == "['norm_cdf', 'index'] True", done.stderr


@pytest.mark.parametrize(
    "f",
    [
        lambda n: np.fromfunction(lambda i, j: (i + n - j) / n, (n, n)),
        lambda n: np.ogrid[0:n, 0:2][0],
        lambda n: np.mgrid[0:n],
        lambda n: np.bincount([0, 1], minlength=n),
    ],
    ids=["fromfunction", "ogrid", "mgrid", "bincount"],
)
def test_makers_take_traced_counts(f):
    fast = lt.jit(f)
    for n in (3, 5, 2):
        assert_same(f(n), fast(n))


def test_a_function_of_places_may_use_traced_values():
    def f(x):
        return np.fromfunction(lambda i, j: x * i + j, (4, 3)).sum()

    assert lt.grad(f)(2.0) == 18.0


def test_c_code_behind_an_attribute_gets_ordinary_arrays():
    """NumPy's bit generators write into the memory of ``numpy.empty`` to answer ``state``."""

    def f(x):
        rng = np.random.default_rng(4)
        return x * (rng.bit_generator.state == np.random.default_rng(4).bit_generator.state)

    assert lt.trace(f, 2.0)(3.0) == 3.0


def test_attributes_with_high_numbers_are_stood_in():
    """Their instructions have a prefix with the upper bits of the number."""
    space = {"numpy": numpy}
    names = "; ".join(f"x.a{i}" for i in range(600))
    lines = [
        "def f(x):",
        f"    if x is None: {names}",
        "    out = numpy.zeros(2)",
        "    out[0] = x",
        "    return out",
    ]
    exec("\n".join(lines), space)

    assert_same(np.array([2.0, 0.0]), lt.trace(space["f"], 1.0)(2.0))


def test_a_dict_whose_items_are_attributes_may_be_captured():
    """``hasattr`` and ``getattr`` raise KeyError for it."""

    class Settings(dict):
        __getattr__ = dict.__getitem__
        __setattr__ = dict.__setitem__

    settings = Settings(rate=0.5, calls=0)

    def f(x):
        settings.calls += 1
        return x * settings.rate

    assert lt.jit(f)(2.0) == 1.0
    assert lt.grad(f)(2.0) == 0.5


# ---- modules with two names, and installed modules without NumPy ----


def test_a_module_with_two_names_gets_its_stand_ins_once(monkeypatch):
    """``multiprocessing`` gives ``__main__`` a second name."""
    monkeypatch.setitem(sys.modules, "hazard_second_name", sys.modules[__name__])

    def f(x):
        return float(x) * 2 if type(x) is float else math.nan

    assert lt.jit(f)(2.0) == 4.0
    assert lt.jit(f)(3.0) == 6.0
    assert "float" not in globals()


WITHOUT_NUMPY = """
def halves(items):
    return [float(item - 1 / 2) for item in items]
"""


def test_an_installed_module_without_numpy_converts_traced_numbers(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "hazard_without_numpy.py").write_text(WITHOUT_NUMPY)
    monkeypatch.syspath_prepend(folder)
    halves = importlib.import_module("hazard_without_numpy").halves

    try:
        assert lt.grad(lambda x: np.prod(halves([x, 2 * x])))(1.0) == 0.5 * 2 + 1.5
        assert lt.jit(halves)([1.0, 3.0]) == [0.5, 2.5]
        assert "float" not in vars(sys.modules["hazard_without_numpy"])
    finally:
        del sys.modules["hazard_without_numpy"]


def test_recording_an_array_constant_reads_no_attribute_of_numpy(monkeypatch):
    """Such a read is slow while the module has another class, and loops make it many times."""
    read = []

    def noticing(get):
        def noted(module, name):
            read.append((name, is_letir_file(sys._getframe(1).f_code.co_filename)))
            return get(module, name)

        return noted

    weights = np.arange(6.0).reshape(2, 3)
    loss = lt.grad(lambda x: np.tanh(weights @ x).sum())
    expected = loss(np.ones(3)), loss(np.ones(3))  # the first calls load and look up more
    for library in stand_ins._libraries:
        kind = library.recording
        monkeypatch.setattr(kind, "__getattribute__", noticing(kind.__getattribute__))

    assert_same(loss(np.ones(3)), expected[1])
    assert read == [("tanh", False)]


def raised(module, x, factor=2.0):
    return module.power(x, factor)


def drawing(rng, x):
    return rng.normal() * x


def test_functions_that_do_not_draw_are_known_through_partial_functions():
    reaches = LATE_BOUND["reaches_draws"]

    assert not reaches(functools.partial(raised, np, factor=3.0))
    assert reaches(functools.partial(raised, np.random))
    assert reaches(functools.partial(drawing, np.random.default_rng(0)))
    assert reaches(functools.partial(raised, np, factor=[np.random.default_rng(0)]))
