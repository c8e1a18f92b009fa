"""Laws of control flow, on generated functions: every way to run them agrees with plain Python.

The functions nest conditionals, loops and combinators, read values of the functions around them,
mix dtypes, and have ties and empty axes. ``f.plain`` is the same source on plain Python loops.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir import passes
from letir.plan.plan import plan_of
from letir.testing import control_functions, functions, programs

QUICK = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
NO_PASSES = {"is_differentiable", "propagate_requires_grad", "register", "unregister"}
PASSES = tuple([getattr(passes, name) for name in passes.__all__ if name not in NO_PASSES])
ARRAYS = 4  # the number of array arguments; the others are integers


def quietly(f, *args):
    """The result of a call; warnings of empty axes and integer powers are ignored."""
    with np.errstate(all="ignore"):
        return f(*args)


def assert_near(expected, found, tolerance: float = 1e-6) -> None:
    """The same dtypes and nearly the same numbers: single precision and reductions round."""
    for one, other in zip(expected, found, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)


def summed(f, integers):
    """``f`` as a function of its arrays, with a single number as result."""
    return lambda *arrays: sum([out.sum() for out in f(*arrays, *integers)])


def directions(arrays) -> tuple:
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=np.shape(x)) for x in arrays)


def dot(xs, ys) -> float:
    return sum([(x * y).sum() for x, y in zip(xs, ys, strict=True)])


@QUICK
@given(control_functions())
def test_programs_agree_with_plain_loops(program):
    f, args = program
    expected, fn = quietly(f.plain, *args), quietly(lt.trace, f, *args)

    assert_near(expected, quietly(lt.run_forward, lt.check(fn), *args))


@QUICK
@given(control_functions(kinds=("cond", "switch", "repeat", "scan", "map", "combine", "place")))
def test_control_flow_on_arrays_agrees_with_plain_loops(program):
    f, args = program

    assert_near(quietly(f.plain, *args), quietly(f, *args))


@QUICK
@given(programs(control_flow=True))
def test_programs_survive_printing_and_parsing(program):
    fn, _ = program
    again = lt.parse(lt.dumps(fn))

    assert again == fn
    assert hash(again) == hash(fn)
    assert lt.dumps(lt.canonicalize(again)) == lt.dumps(lt.canonicalize(fn))


@QUICK
@given(programs(control_flow=True))
def test_a_plan_is_bitwise_equal_to_run_forward(program):
    fn, args = program
    expected = quietly(lt.run_forward, fn, *args)

    assert_near(expected, quietly(plan_of(fn).run, list(args)), 0)


@QUICK
@given(programs(control_flow=True), st.data())
def test_every_pass_keeps_results(program, data):
    fn, args = program
    expected = quietly(lt.run_forward, fn, *args)
    chosen = data.draw(st.lists(st.sampled_from(PASSES), min_size=2, max_size=6))

    for change in chosen:
        fn = lt.check(change(fn))
    assert_near(expected, quietly(lt.run_forward, fn, *args), 1e-9)


@QUICK
@given(control_functions(named=True, max_length=3))
def test_programs_of_symbolic_sizes_serve_every_size(program):
    f, args = program
    shapes = (("n", 2), ("n",), (2,), (), (), ("n",))
    fn = lt.check(lt.trace(f, *map(lt.ShapeDtype, shapes, [x.dtype for x in args])))

    for repeats in (1, 2):
        table, column, row, number, k, places = args
        longer = [np.concatenate([x] * repeats) for x in (table, column, places)]
        given_ = (*longer[:2], row, number, k, longer[2])
        assert_near(quietly(f.plain, *given_), quietly(lt.run_forward, fn, *given_))


@QUICK
@given(functions(smooth=True, control_flow=True))
def test_gradients_agree_with_differences(program):
    f, args = program
    arrays, step = args[:ARRAYS], 1e-6
    total, plain = (summed(g, args[ARRAYS:]) for g in (f, f.plain))
    ways = directions(arrays)
    ahead, behind = (
        plain(*[x + sign * step * d for x, d in zip(arrays, ways, strict=True)]) for sign in (1, -1)
    )
    slope = dot(lt.grad(total, (0, 1, 2, 3))(*arrays), ways)

    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(lt.jvp(total, tuple(arrays), ways)[1], slope, atol=1e-9)


@QUICK
@given(control_functions(smooth=True))
def test_gradients_of_variables_agree_with_programs(program):
    f, args = program
    total, arrays = summed(f, args[ARRAYS:]), args[:ARRAYS]
    expected = lt.grad(total, (0, 1, 2, 3))(*arrays)
    variables = [lt.Variable(x, requires_grad=True) for x in arrays]
    out = total(*variables)

    if isinstance(out, lt.Variable) and out.requires_grad:
        out.backward()
    for variable, ct in zip(variables, expected, strict=True):
        found = np.zeros(variable.shape) if variable.grad is None else np.asarray(variable.grad)
        np.testing.assert_allclose(found, ct, rtol=1e-9, atol=1e-9)


@QUICK
@given(control_functions(smooth=True, max_steps=2))
def test_both_modes_agree_on_second_derivatives(program):
    f, args = program
    arrays = tuple(args[:ARRAYS])
    slope, ways = lt.grad(summed(f, args[ARRAYS:]), (0, 1, 2, 3)), directions(arrays)
    reverse = lt.grad(lambda *arrays: dot(slope(*arrays), ways), (0, 1, 2, 3))(*arrays)
    forward = lt.jvp(slope, arrays, ways)[1]

    for one, other in zip(reverse, forward, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@QUICK
@given(control_functions(), st.tuples(*[st.sampled_from([0, 0, None])] * 6))
def test_vmap_agrees_with_a_loop_over_examples(program, axes):
    f, args = program
    if axes == (None,) * 6:
        axes = (0,) * 6
    batch = [np.stack([x, np.flip(x).astype(x.dtype)]) for x in args]
    given_ = [b if axis == 0 else x for b, x, axis in zip(batch, args, axes, strict=True)]
    rows = [
        quietly(f.plain, *[b[i] if axis == 0 else b for b, axis in zip(given_, axes, strict=True)])
        for i in range(2)
    ]

    found = quietly(lt.vmap(f, axes), *given_)
    assert_near([np.stack(row) for row in zip(*rows, strict=True)], found)


CHANGES = {
    "none": lambda x, is_long: x,
    "single": lambda x, is_long: x.astype("f4"),
    "integer": lambda x, is_long: x.astype("i8"),
    "rank": lambda x, is_long: x[None],
    "number": lambda x, is_long: x.item() if x.ndim == 0 and x.dtype != bool else x,
    "size": lambda x, is_long: np.concatenate([x, x]) if is_long else x,
}
LONG = (True, True, False, False, False, True)  # the arguments whose first size may vary


@QUICK
@given(control_functions(), st.lists(st.sampled_from(list(CHANGES)), min_size=3, max_size=6))
def test_jit_agrees_with_the_function_when_arguments_change(program, changes):
    f, args = program

    def entry(*given_):
        """``f`` on the arguments that it takes, of any dtype and rank."""
        pairs = zip(map(np.asarray, given_), args, strict=True)
        return f(*[x.reshape(x.shape[x.ndim - a.ndim :]).astype(a.dtype) for x, a in pairs])

    fast = lt.jit(entry)
    for change in changes:
        given_ = list(map(CHANGES[change], args, LONG))
        pairs = zip(map(np.asarray, given_), args, strict=True)
        taken = [x.reshape(x.shape[x.ndim - a.ndim :]).astype(a.dtype) for x, a in pairs]
        assert_near(quietly(f.plain, *taken), quietly(fast, *given_), 1e-5)


@QUICK
@given(control_functions(smooth=True), st.sampled_from(["inside", "outside"]))
def test_jit_and_grad_commute(program, place):
    f, args = program
    total, arrays = summed(f, args[ARRAYS:]), args[:ARRAYS]
    plain = lt.grad(total, (0, 1, 2, 3))
    fast = lt.jit(plain) if place == "outside" else lt.grad(lt.jit(total), (0, 1, 2, 3))

    for _ in range(2):
        assert_near(plain(*arrays), fast(*arrays), 1e-9)


@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", ["cond", "switch", "fori", "repeat", "scan", "map", "combine"])
def test_every_kind_of_control_flow_is_generated(kind):
    names = {"fori": "fori_loop", "repeat": "while_loop"}
    sources = []

    @QUICK
    @given(control_functions(kinds=(kind,)))
    def collect(program):
        sources.append(program[0].source)

    collect()
    calls = ("lt.reduce", "lt.associative_scan") if kind == "combine" else (names.get(kind, kind),)
    assert all(any(call in source for source in sources) for call in calls)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_carry_that_is_overwritten_in_the_first_step_has_the_gradient_of_its_reads(n):
    def scanned(x):
        last, ys = lt.scan(lambda c, _: (np.zeros(()), c**2), x, np.ones(n))
        return last + ys.sum()

    def counted(x):
        return sum(lt.fori_loop(0, np.array(n), lambda i, c: (0.0, c[1] + c[0] ** 2), (x, 1.0)))

    for f in (scanned, counted):
        expected = 6.0 if n else 1.0
        assert lt.grad(f)(3.0) == lt.jvp(f, (3.0,), (1.0,))[1] == expected


def test_control_flow_may_be_mapped_over_no_examples():
    def chosen(x):
        return lt.cond(x > 0, lambda x: x * 2, lambda x: -x, x)

    def repeated(x):
        return lt.while_loop(lambda x: x < 2, lambda x: x + 1, x)

    for f in (chosen, repeated):
        fn = lt.trace(lambda x, f=f: lt.map(f, x), np.zeros(0))

        assert passes.decompose(fn)(np.zeros(0)).shape == (0,)
        assert lt.grad(lambda x, f=f: lt.map(f, x).sum())(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize(
    "f",
    [
        lambda c: lt.cond(True, lambda: np.tanh(c), lambda: c * 2),
        lambda c: lt.switch(1, [lambda: c * 2, lambda: np.tanh(c)]),
        lambda c: lt.fori_loop(0, 2, lambda i, s: np.tanh(c), c),
        lambda c: lt.map(lambda x: c * 2, np.ones(3)),
    ],
)
def test_a_body_may_return_a_variable_that_it_captures(f):
    variable = lt.Variable(np.ones(2), requires_grad=True)
    f(variable).sum().backward()

    np.testing.assert_array_equal(variable.grad, lt.grad(lambda c: f(c).sum())(np.ones(2)))
