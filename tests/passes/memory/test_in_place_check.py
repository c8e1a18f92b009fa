"""in_place_check: a buffer that an update consumes has no other uses [F6]."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import letir as lt
from letir import run_forward
from letir.ast.primitive import PRIMITIVES as OPS
from letir.ast.types import ArrayType
from letir.errors import LetirError
from letir.passes import in_place_check
from letir.passes.memory.aliases import may_share
from letir.testing import assert_same, functions, programs
from tests.each_sample import in_one_test
from tests.passes.exactness import assert_unchanged, gradient_of, ops, program

SOME = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
X = ArrayType(float, (4,))
UPDATES = ("index_set", "index_add", "index", "reshape", "transpose", "split", "exp")


def constant(x):
    """An array constant in the program of ``x``."""
    return x.emitter.apply(OPS["constant"], (), OPS["constant"].complete({"value": np.ones(4)}))


COPIED = {
    "used later": lambda x: ((y := x * 2), y.at[0].set(1.0)),
    "used by the update": lambda x: (y := x * 2).at[np.array([0, 1])].set(y[1:3]),
    "used by the update and later": lambda x: ((v := (y := x * 2)[:2]), y.at[1:3].set(v)),
    "through a view": lambda x: ((y := x * 2)[1:], y.at[0].set(1.0)),
    "through a view of a view": lambda x: ((y := x * 2).reshape(2, 2).T, y.at[0].add(1.0)),
    "of a view": lambda x: ((y := x * 2), y.reshape(2, 2).at[0].set(1.0)),
    "twice": lambda x: ((y := x * 2).at[0].set(1.0), y.at[1].set(2.0)),
    "a constant": lambda x: constant(x).at[0].set(x[0]),
}
KEPT = {
    "a view used by the update": lambda x: (y := x * 2).at[1:].set(y[:-1]),
    "an element used by the update": lambda x: (y := x * 2).at[1:].add(y[0]),
    "used before": lambda x: ((y := x * 2).sum(), y.at[0].set(1.0)),
    "a chain": lambda x: (x * 2).at[0].set(1.0).at[1].set(2.0),
    "an argument": lambda x: x.at[0].set(1.0),
    "elements used later": lambda x: (
        (a := (y := x * 2)[0]),
        (b := y[1]),
        y.at[0].set(b).at[1].set(a),
    ),
    "a copy of it is used": lambda x: ((y := x * 2) + 1, y.at[0].set(1.0)),
    "no update": lambda x: x * 2,
}


@pytest.mark.parametrize("name", COPIED)
def test_a_buffer_that_is_used_later_is_copied(name):
    fn = program(COPIED[name], X)

    assert 1 == ops(in_place_check(fn)).count("copy")
    assert_unchanged(in_place_check, fn, np.arange(4.0))


@pytest.mark.parametrize("name", KEPT)
def test_a_buffer_without_further_uses_is_consumed(name):
    fn = program(KEPT[name], X)

    assert fn is in_place_check(fn)


def in_place(fn: lt.Lambda, *args):
    """The results when every update runs in place without a check."""
    values = dict(zip(fn.params, args, strict=True))
    made = set()
    for bind in fn.binds:
        operands = [values[a] if type(a) is lt.Local else a.value for a in bind.args]
        compute = bind.op.impl
        if bind.op.update is not None and bind.args[0] in made:
            compute = bind.op.update
        out = compute(np, *operands, **bind.attrs)
        results = (out,) if bind.op.results is None else out
        values.update(zip(bind.binders, results, strict=True))
        is_mine = not may_share(bind.op) or bool(made.intersection(bind.locals()))
        if is_mine and type(results[0]) is np.ndarray:
            made.update(bind.binders)
    return tuple([values[a] if type(a) is lt.Local else a.value for a in fn.ret.args])


@SOME
@given(programs(ops=UPDATES, max_steps=25))
def test_after_the_pass_every_update_can_run_in_place(program):
    fn, args = program
    expected = run_forward(fn, *[np.copy(a) if type(a) is np.ndarray else a for a in args])

    found = in_place(in_place_check(fn), *args)
    assert_same(expected if isinstance(expected, tuple) else (expected,), found)


def test_an_argument_is_read_before_it_changes():
    def function(x, new):
        view = x.reshape(2, 2)
        changed = OPS["write_back"](x, new)
        return view, changed

    fn = program(function, X, X)
    view, changed = run_forward(in_place_check(fn), np.zeros(4), np.ones(4))

    assert_same(np.zeros((2, 2)), view)
    assert_same(np.ones(4), changed)


def test_a_number_is_read_before_the_argument_changes():
    """CuPy has no scalars: the element of an array is a view of it, which would change as well."""

    def function(x, new):
        number = x[1]
        changed = OPS["write_back"](x, new)
        return number, changed

    found = in_place_check(program(function, X, X))

    assert ops(found)[:2] == ["index", "copy"]
    assert found.ret.args[0] not in found.binds[0].binders


def test_updates_of_new_arrays_need_no_copies():
    def step(w, g):
        w -= g
        w[0] = 1.0
        return w, w[1:]

    fn = lt.trace(step, np.ones(3), np.ones(3))

    assert fn is in_place_check(fn)


def test_elements_that_are_swapped_are_the_only_copies():
    def f(x):
        y = x * 2
        for i in range(len(y) // 2):
            y[i], y[-1 - i] = y[-1 - i], y[i]
        return y

    jitted = lt.jit(f)

    assert np.array_equal([8.0, 6.0, 4.0, 2.0, 0.0], jitted(np.arange(5.0)))
    assert "copy" not in ops(jitted.debug_state().plans[0].optimized)


def test_bodies_of_loops_are_checked():
    inner = lt.checkpoint(lambda x: ((y := x * 2), y.at[0].set(1.0)))
    found = in_place_check(lt.trace(inner, np.ones(3)))

    assert "copy" in ops(found.binds[0].attrs["body"])


@SOME
@given(functions())
def test_results_of_generated_functions_are_unchanged(drawn):
    f, args = drawn
    try:
        fn = lt.trace(f, *[arg.copy() for arg in args])
    except LetirError:
        return

    copied = run_forward(in_place_check(fn), *[arg.copy() for arg in args])
    assert_same(run_forward(fn, *[arg.copy() for arg in args]), copied)


@SOME
@given(functions(smooth=True))
def test_gradients_of_generated_functions_are_unchanged(drawn):
    f, args = drawn
    try:
        df, given = gradient_of(lt.trace(f, *[arg.copy() for arg in args]), args)
    except (LetirError, ValueError, ArithmeticError):
        return

    assert_same(run_forward(df, *given), run_forward(in_place_check(df), *given))


@pytest.mark.parametrize("is_argument", [False, True])
def test_a_number_read_before_a_write_stays_a_scalar(is_argument):
    def f(x):
        y = x if is_argument else np.exp(x)
        first, last = y[0], y[-1:][0]
        y[[0, -1]] = y[[-1, 0]] * 2
        y[1] = first
        return first, last, y

    x = np.arange(4.0)
    fn = lt.trace(f, x.copy())

    for run in (fn, lt.compile(fn), lt.compile(fn, exact=True), lt.jit(f)):
        assert_same(f(x.copy()), run(x.copy()))


def float_before(x):
    read = [float(a) for a in x]
    x[::2] /= 0.5
    return read, max(read)


def error_region_before(x):
    with np.errstate(all="ignore"):
        logarithm = np.log(x).sum()
    x += 1.0
    return logarithm, float(logarithm)


@pytest.mark.parametrize("f", [float_before, error_region_before])
@pytest.mark.parametrize("exact", [False, True])
def test_a_python_number_read_before_a_write_to_an_argument_stays_a_python_number(f, exact):
    x, y = np.array([0.5, 1.25, 2.0]), np.array([0.5, 1.25, 2.0])
    compiled = lt.jit(f, exact=exact)

    for _ in range(2):
        assert_same(f(x), compiled(y))
        assert_same(x, y)


READS = {
    "an element": lambda x: x[0],
    "a number": lambda x: x.tolist()[1],
    "a reduction": lambda x: x.max(),
    "a 0-d view": lambda x: x[0, ...],
    "a reshape of a view": lambda x: x[1:2].reshape(()),
}
KINDS = {
    "itself": lambda s: s,
    "the real part": np.real,
    "an array": lambda s: np.asarray(s),  # noqa: PLW0108
    "a copy": np.copy,
    "a view": np.squeeze,
    "without nan": np.nan_to_num,
    "no cast": lambda s: np.float64(s).astype(float, copy=False),
    "its method": lambda s: np.float64(s).copy(),
}


@in_one_test
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("made", KINDS)
def test_a_value_read_before_a_write_to_an_argument_keeps_its_class(read, made):
    def f(x):
        found = KINDS[made](READS[read](x))
        x += 1.0
        return found

    x, y, z = (np.array([0.5, 1.25, 2.0]) for _ in range(3))
    compiled = lt.jit(f)

    for _ in range(2):
        expected = f(x)
        assert_same(expected, compiled(y))
        assert_same(expected, lt.jit(f, exact=True)(z))
        assert_same([x, x], [y, z])


def test_places_that_are_operands_share_no_memory_with_views():
    """Two arguments that are read at the same place are not taken for one array."""

    def f(a, m, i):
        row, other = m[i], a[i]
        row[0], other[1] = 5.0, 7.0
        return a, m

    fast = lt.jit(f)
    for i in (1, 0):
        given = [np.ones((2, 3)), np.zeros((2, 3))]
        expected = [array.copy() for array in given]
        for mine, numpys in zip(fast(*given, i), f(*expected, i), strict=True):
            assert_same(numpys, mine)
        for mine, numpys in zip(given, expected, strict=True):
            assert_same(numpys, mine)


def test_results_that_are_no_views_of_a_written_argument_are_not_copied():
    def f(a, x):
        product = np.einsum("ij,kj->ik", a, a)
        column = product[:, 1]
        a[0] = x
        return product, column, np.einsum("ij->ji", a)

    args = np.arange(9.0).reshape(3, 3), np.ones(3)
    checked = in_place_check(lt.trace(f, *args))

    assert [bind.args for bind in checked.binds if bind.op.name == "copy"] == [checked.params[:1]]
    product, column, transpose = lt.jit(f)(*(a.copy() for a in args))
    assert np.shares_memory(product, column)
    assert_same(transpose, f(*(a.copy() for a in args))[2])
