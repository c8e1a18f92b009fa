"""``lt.scan``: values, derivatives and errors, compared with the Python loop."""

import gc
import itertools
import weakref

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test
from tests.tracing.control_flow.scan_programs import RNG, W, network, plain_network, scans


@in_one_test
@pytest.mark.parametrize("n, reverse", [*itertools.product((0, 1, 7), (False, True))])
@pytest.mark.parametrize("every", [None, 1, 3, 10])
def test_value_and_gradient_agree_with_the_python_loop(n, reverse, every):
    args = W, np.full(3, 0.2), RNG.normal(size=(n, 3))

    def loop(*args):
        return network(*args, reverse=reverse, every=every)

    def plain(*args):
        return plain_network(*args, reverse=reverse)

    value, gradient = lt.value_and_grad(loop, (0, 1, 2))(*args)
    expected, by_loop = lt.value_and_grad(plain, (0, 1, 2))(*args)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    for ct, other in zip(gradient, by_loop, strict=True):
        assert (ct.dtype, ct.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(ct, other, rtol=1e-12, atol=1e-14)


# ---- several steps in a trip ----


@in_one_test
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "n, unroll, every",
    [
        *((0, 2, None), (7, 3, None), (6, 3, None), (7, 9, None), (7, True, None)),
        *((1, True, None), (7, False, None), (7, 2, 3), (7, True, 2)),
    ],
)
def test_unrolled_values_and_gradients_agree_with_the_python_loop(n, unroll, every, reverse):
    args = W, np.full(3, 0.2), RNG.normal(size=(n, 3))

    def loop(*args):
        return network(*args, reverse=reverse, unroll=unroll, every=every)

    value, gradient = lt.value_and_grad(loop, (0, 1, 2))(*args)
    expected, by_loop = lt.value_and_grad(
        lambda *args: plain_network(*args, reverse=reverse), (0, 1, 2)
    )(*args)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    for ct, other in zip(gradient, by_loop, strict=True):
        np.testing.assert_allclose(ct, other, rtol=1e-12, atol=1e-14)


def test_unrolled_steps_have_the_same_bits_under_every_evaluator():
    args = W, np.full(3, 0.2), RNG.normal(size=(7, 3))

    def unrolled(w, h, xs):
        step = lambda h, x: ((h := np.tanh(h @ w + x)), {"h": h, "n": 1})  # noqa: E731
        return lt.scan(step, h, xs, unroll=3)

    once = lt.scan(lambda h, x: ((h := np.tanh(h @ W + x)), {"h": h, "n": 1}), *args[1:])
    program = lt.trace(unrolled, *args)
    text = lt.dumps(program)
    assert lt.parse(text) == program
    assert text.count("tanh") == 3 + 1  # a trip, and the step that remains
    source: dict = {}
    exec(lt.to_source(program), source)
    found = [unrolled(*args), program(*args), lt.compile(program, exact=True)(*args)]
    found += [lt.jit(unrolled, exact=True)(*args), source["f"](*args)]
    for result in found:
        assert_same(once, result)


def test_unrolled_loops_have_tangents_and_batches():
    xs, ws = RNG.normal(size=(7, 3)), RNG.normal(size=(2, 3, 3))

    def f(w, unroll):
        return network(w, np.full(3, 0.2), xs, unroll=unroll)

    for transformed in (lambda g: lt.hessian(g)(W), lambda g: lt.vmap(lt.grad(g))(ws)):
        found, expected = (transformed(lambda w, k=k: f(w, k)) for k in (3, 1))
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


def test_a_full_unrolling_has_no_loop_and_sizes_of_rows_may_be_symbolic():
    def f(unroll):
        kinds = lt.ShapeDtype((5, "m")), lt.ShapeDtype("m")
        return lt.trace(
            lambda xs, h: lt.scan(lambda h, x: (h + x, h * x), h, xs, unroll=unroll), *kinds
        )

    xs, h = RNG.normal(size=(5, 4)), np.ones(4)
    for unroll, loops in [(True, 0), (5, 0), (2, 1), (1, 1)]:
        assert loops == len(scans(f(unroll)))
        assert_same(f(1)(xs, h), f(unroll)(xs, h))


# ---- batches, types and values ----


def test_vmap_agrees_with_the_loop():
    ws, xs = RNG.normal(size=(2, 3, 3)), RNG.normal(size=(5, 2, 3))
    h = np.full(3, 0.2)

    found = lt.vmap(lt.grad(network, (0, 2)), (0, None, 1))(ws, h, xs)
    for i in range(2):
        for ct, expected in zip(
            found, lt.grad(plain_network, (0, 2))(ws[i], h, xs[:, i]), strict=True
        ):
            np.testing.assert_allclose(ct[i], expected, rtol=1e-12)


def test_only_carries_that_depend_on_mapped_values_are_batched():
    def f(x):
        (count, total), _ = lt.scan(lambda c, v: ((c[0] + 1, c[1] * v), None), (0, 1.0), x)
        return count, total

    fn = lt.vmap(lt.trace(f, np.ones(3)))
    counts, totals = fn(np.full((2, 3), 2.0))
    np.testing.assert_array_equal(counts, [3, 3])
    np.testing.assert_array_equal(totals, [8.0, 8.0])
    (bind,) = scans(lt.trace(lt.vmap(f), np.ones((2, 3))))
    assert [(), (2,)] == [binder.type.shape for binder in bind.binders[:2]]


@pytest.mark.parametrize(
    "init, xs, dtype",
    [
        (0, np.ones(3, "float32"), "float32"),
        (0.0, np.ones(3, "float32"), "float32"),
        (0, np.ones(3), "float64"),
        (0.0, np.ones(3, "complex64"), "complex64"),
        (True, np.ones(3, bool), "bool"),
        (np.float32(0), np.ones(3, "float32"), "float32"),
    ],
)
def test_a_python_number_in_the_carry_gets_the_dtype_that_the_step_returns(init, xs, dtype):
    last, ys = lt.scan(lambda c, x: (c + x, c), init, xs)

    assert (dtype, dtype) == (last.dtype, ys.dtype)


def test_results_have_numpys_kinds():
    last, (ys, ones, nothing) = lt.scan(lambda c, x: (c + x, (c, 1, None)), 0.0, np.ones(3))

    assert np.float64 is type(last)
    assert ((3,), np.dtype(int), None) == (ys.shape, ones.dtype, nothing)
    last, _ = lt.scan(lambda c, x: (c, None), np.zeros(()), np.ones(3))
    assert np.float64 is type(last) or () == last.shape


@pytest.mark.parametrize("length", [0, 3])
def test_a_scan_without_arrays_runs_length_steps(length):
    last, ys = lt.scan(lambda c, x: (c * 2, (c, x)), 1, length=length)

    assert 2**length == last
    np.testing.assert_array_equal(ys[0], [1, 2, 4][:length])
    assert ys[1] is None


def test_symbolic_sizes_are_bound_when_the_program_runs():
    def f(w, xs):
        h, ys = lt.scan(lambda h, x: (np.tanh(h * w + x), h * x), xs[0] * 0, xs)
        return (ys * h).sum()

    fn = lt.trace(f, lt.ShapeDtype(()), lt.ShapeDtype(("n", "m")))
    assert scans(fn)[0].attrs["length"] is None
    gradient = lt.grad(fn, (0, 1))
    for n, m in ((1, 2), (4, 3)):
        xs = RNG.normal(size=(n, m))
        np.testing.assert_allclose(fn(0.3 * np.ones(()), xs), f(0.3, xs), rtol=1e-13)
        for found, expected in zip(
            gradient(np.array(0.3), xs), lt.grad(f, (0, 1))(np.array(0.3), xs), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_scan_of_zero_steps_knows_symbolic_sizes():
    fn = lt.trace(
        lambda xs: lt.scan(lambda c, x: (c, x * 2), 0.0, xs)[1], lt.ShapeDtype(("n", "m"))
    )

    assert (0, 5) == fn(np.zeros((0, 5))).shape


def test_a_loop_survives_parsing_files_and_source():
    args = W, np.full(3, 0.2), RNG.normal(size=(5, 3))
    fn = lt.value_and_grad(lt.trace(network, *args))

    assert fn == lt.parse(lt.dumps(fn)) == lt.check(lt.canonicalize(fn))
    space: dict = {}
    exec(lt.to_source(fn), space)
    for found, expected in zip(space["f"](*args), fn(*args), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_diff_and_linearize_accept_a_loop():
    fn = lt.trace(network, W, np.full(3, 0.2), RNG.normal(size=(5, 3)))

    assert not lt.diff(fn, fn)
    _, lin = lt.linearize(fn, W, np.full(3, 0.2), np.ones((5, 3)))
    tangents = np.ones((3, 3)), np.ones(3), np.zeros((5, 3))
    _, expected = lt.jvp(fn, (W, np.full(3, 0.2), np.ones((5, 3))), tangents)
    np.testing.assert_allclose(lin(*tangents), expected, rtol=1e-12)


def test_the_transpose_of_a_linear_loop():
    def f(x):
        return lt.scan(lambda c, v: (2 * c + v, c), 0.0, x)

    matrix = np.stack([np.append(f(row)[1], f(row)[0]) for row in np.eye(4)])
    (found,) = lt.linear_transpose(f, np.ones(4))((np.array(3.0), np.arange(4.0)))
    np.testing.assert_allclose(found, matrix @ [*np.arange(4.0), 3.0])


# ---- freeing ----


def test_a_step_frees_the_carry_that_it_receives():
    """[C1] at no time are more than two carries alive."""
    alive, most = [], []

    def count(x):
        made = np.array(x + 1.0)
        alive.append(weakref.ref(made))
        most.append(sum(ref() is not None for ref in alive))
        return made

    step = lt.opaque(count, aval=lambda x: x)

    def loop(h):
        return lt.scan(lambda h, _: (step(h), h.sum()), h, length=20)

    fn = lt.trace(loop, np.ones(5), abstract=True)
    gc.collect()
    gc.disable()
    try:
        last, _ = fn(np.ones(5))
    finally:
        gc.enable()

    assert (21.0, 20, 2) == (last[0], len(most), max(most))


def test_an_error_in_a_step_keeps_no_value():
    """[C1] The error names the step of the program and its line."""
    alive = []

    def fail(x):
        made = np.array(x + 1)
        alive.append(weakref.ref(made))
        if len(alive) > 3:
            raise FloatingPointError("no more")
        return made

    step = lt.opaque(fail, aval=lambda x: x)

    def loop(h):
        return lt.scan(lambda h, _: (step(h), None), h, length=9)[0]

    fn = lt.trace(loop, np.ones(5), abstract=True)
    with pytest.raises(FloatingPointError, match="no more") as caught:
        fn(np.ones(5))

    assert [] == [ref for ref in alive if ref() is not None]
    assert any("test_scans.py" in note for note in caught.value.__notes__)


# ---- errors ----

ONES = np.ones(3)
WRONG = {
    "dtype": (lambda: lt.scan(lambda c, x: (c + 1.5, x), np.int32(1), ONES), "int32.*float64"),
    "leaf": (
        lambda: lt.scan(lambda c, x: ({"a": c["a"] * ONES}, x), {"a": np.float64(1)}, ONES),
        r"carry\['a'\]: float64\[\] comes in, float64\[3\] goes out",
    ),
    "no pair": (lambda: lt.scan(lambda c, x: c, 0.0, ONES), r"must return \(carry, y\)"),
    "nesting": (lambda: lt.scan(lambda c, x: ((c, c), x), 0.0, ONES), "nests as"),
    "no length": (lambda: lt.scan(lambda c, x: (c, x), 0.0), "length must be given"),
    "sizes": (lambda: lt.scan(lambda c, x: (c, x), 0.0, (ONES, np.ones(4))), "differ: 3, 4"),
    "length": (lambda: lt.scan(lambda c, x: (c, x), 0.0, ONES, length=4), "length differ: 3, 4"),
    "length of a float": (
        lambda: lt.scan(lambda c, x: (c, x), 0.0, length=2.5),
        "length must be an int, found 2.5",
    ),
    "length of too many bits": (
        lambda: lt.scan(lambda c, x: (c, x), 0.0, length=1 << 70),
        "does not fit into 64 bits",
    ),
    "text": (lambda: lt.scan(lambda c, x: (c, x), "a", ONES), "'a' of type str"),
    "no axis": (lambda: lt.scan(lambda c, x: (c, x), 0.0, 3.0), "no axis to loop over"),
    "question": (lambda: lt.scan(lambda c, x: (c if c > 0 else -c, x), 0.0, ONES), "truth value"),
    "negative": (
        lambda: lt.scan(lambda c, x: (c, x), 0.0, length=-1),
        "length must not be negative, found -1",
    ),
    "every": (
        lambda: lt.scan(lambda c, x: (c, x), 0.0, ONES, checkpoint_every=0),
        "scan: checkpoint_every must be 1 or more, found 0",
    ),
    "every, no integer": (
        lambda: lt.scan(lambda c, x: (c, x), 0.0, ONES, checkpoint_every=2.5),
        "scan: checkpoint_every must be an int, found 2.5",
    ),
    "unroll": (
        lambda: lt.scan(lambda c, x: (c, x), 0.0, ONES, unroll=0),
        "scan: unroll must be 1 or more, found 0",
    ),
    "unroll, no integer": (
        lambda: lt.scan(lambda c, x: (c, x), 0.0, ONES, unroll=2.5),
        "unroll must be .* found 2.5",
    ),
    "unroll, symbolic": (
        lambda: lt.trace(
            lambda xs: lt.scan(lambda c, x: (c, x), 0.0, xs, unroll=2), lt.ShapeDtype("n")
        ),
        "scan: unroll needs a known number of steps, found n",
    ),
    "every, symbolic": (
        lambda: lt.trace(
            lambda xs: lt.scan(lambda c, x: (c, x), 0.0, xs, checkpoint_every=2), lt.ShapeDtype("n")
        ),
        "scan: checkpoint_every needs a known number of steps, found n",
    ),
}


@in_one_test
@pytest.mark.parametrize("name", WRONG)
def test_errors_say_what_was_found_and_where(name):
    call, message = WRONG[name]

    with pytest.raises(lt.LetirError, match=message) as caught:
        call()
    assert "test_scans.py" in str(caught.value)


# ---- Variables and writes ----


def test_variables_that_a_step_closes_over_have_gradients():
    w, xs = lt.Variable(W, requires_grad=True), RNG.normal(size=(5, 3))

    network(w, np.full(3, 0.2), xs).backward()

    expected = lt.grad(plain_network)(W, np.full(3, 0.2), xs)
    np.testing.assert_allclose(np.asarray(w.grad), expected, rtol=1e-12)


def test_a_variable_in_a_loop_in_a_loop_has_a_gradient():
    w = lt.Variable(0.5, requires_grad=True)

    def outer(c, _):
        return lt.scan(lambda c, _: (c * w, None), c, length=2)[0], None

    lt.scan(outer, 1.0, length=3)[0].backward()

    assert float(w.grad) == pytest.approx(6 * 0.5**5)


def test_a_step_may_write_into_its_arguments():
    start = np.ones(3)

    def step(c, x):
        c["n"][0] += x
        c["n"] *= 2
        return c, c["n"].sum()

    last, ys = lt.scan(step, {"n": start}, np.arange(3.0))

    expected, sums = np.ones(3), []
    for x in range(3):
        expected[0] += x
        expected *= 2
        sums.append(expected.sum())
    np.testing.assert_array_equal(last["n"], expected)
    np.testing.assert_array_equal(ys, sums)
    np.testing.assert_array_equal(start, np.ones(3))


def test_effects_of_a_step_happen_once(capsys):
    def f(x):
        def step(c, x):
            lt.debug.print("{}", c)
            return c * x, c

        return lt.scan(step, 1.0, x)[0]

    x = np.array([2.0, 3.0])
    variable = lt.Variable(x, requires_grad=True)
    calls = lambda: lt.grad(f)(x), lambda: lt.jvp(f, (x,), (x,)), lambda: f(variable).backward()
    for call in calls:
        call()
        assert "1.0\n2.0\n" == capsys.readouterr().out
