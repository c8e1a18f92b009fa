"""The batching transform agrees with a loop over examples."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.ast.text.parser import parse
from letir.ast.types import Undef
from letir.eval.evaluator import Evaluator, run_flat
from letir.ops.define.records import DISCRETE
from letir.testing import SAMPLES, assert_close, assert_same, programs
from letir.transforms.batching import batch_program

X = np.linspace(-1.0, 1.2, 12).reshape(4, 3)


# ---- the transform of programs ----


def test_binds_that_do_not_depend_on_mapped_values_are_unchanged():
    f3 = "float64[3]"
    fn = parse(
        f"lambda %0: {f3}, %1: {f3} {{ %2: {f3} = exp(%0); %3: {f3} = mul(%2, %1); return %3 }}"
    )

    program, axes = batch_program(fn, (None, 0), 4)

    assert fn.binds[0] is program.binds[0]
    assert (0,) == axes


def test_axes_of_parameters_may_count_from_the_end():
    fn = parse("lambda %0: float64[3] { %1: float64[3] = exp(%0); return %1 }")

    program, _ = batch_program(fn, (-1,), 4)

    assert (3, 4) == program.params[0].type.shape
    assert_close(np.exp(X), program(X.T))
    with pytest.raises(lt.ShapeError, match="2 axes for a function of 1 parameters"):
        batch_program(fn, (0, 0), 4)


def test_a_result_that_does_not_depend_on_mapped_values_is_not_batched():
    fn = parse("lambda %0: float64[3], %1: float64[3] { %2 = exp(%0); return %2, %1 }")

    assert (None, 0) == batch_program(fn, (None, 0), 4)[1]


def test_a_raw_gradient_program_maps_with_missing_cotangents():
    """[D6, D7]"""
    gradient = lt.differentiate(lt.trace(lambda x, y: (np.sin(x) * y, x.sum()), X[0], X[1]))
    kept = [gradient.forward(x, x)[1] for x in X]
    df, _ = batch_program(gradient.df, [0] * len(gradient.df.params), 4)
    others = [Undef] * (len(gradient.df_input_vjps) - 2)

    for cts in itertools.product((X, Undef), (X[:, 0], Undef)):
        found = Evaluator(np).call(df, [*cts, *others, *map(np.stack, zip(*kept, strict=True))])
        for i, x_kept in enumerate(kept):
            one = [ct if ct is Undef else ct[i] for ct in cts]
            expected = Evaluator(np).call(gradient.df, [*one, *others, *x_kept])
            for a, b in zip(expected, found, strict=True):
                assert a is b is Undef or np.allclose(a, b[i])


def test_a_batch_rule_with_a_wrong_result_shape_is_named():
    wrong = lt.primitive(
        "t.wrong", lambda xp, x: x, lambda x: x, batch=lambda args, axes: (args[0].sum(), None)
    )

    with pytest.raises(
        lt.ShapeError, match=r"t.wrong: its batch rule gave a result of float64\[\]"
    ):
        lt.vmap(wrong)(X)


def test_a_batch_rule_may_put_the_batch_axis_anywhere():
    turned = lt.primitive(
        "t.turned", lambda xp, x: x, lambda x: x, batch=lambda args, axes: (args[0].T, -1)
    )

    assert_same(X, lt.vmap(turned)(X))


# ---- generated programs ----

# comparisons that depend on the last bit of a sum may differ between a batch and a loop, and so do
# the eigenvectors of a matrix that almost has no basis of them or has equal eigenvalues; the points
# of interp may come in any order, for which NumPy promises nothing
JUMPS = {
    *("eig", "generalized_eigh"),
    *("floor_divide", "remainder", "floor", "ceil", "trunc", "rint", "sign", "cast", "guard"),
    *("argmax", "argmin", "interp", "random_draw", "dropout", "generator_draw", "unique"),
    *("random_bernoulli", "random_categorical", "random_randint", "random_choice"),
    *(name for name in SAMPLES if PRIMITIVES[name].vjp is DISCRETE),
}
DRAWN = {n for n, found in SAMPLES.items() if not any("program" in s.exempt for s in found)}
STEADY = DRAWN - JUMPS
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(QUICK, max_examples=10_000)
DOUBLE = [np.dtype(name) for name in ("bool", "int64", "float64")]
SIZE = 3


def batch_of(args: list, choice: int) -> tuple[list, list]:
    """(rows, axes): ``SIZE`` lists of arguments, and the axis along which each is mapped."""
    rows = [list(args) for _ in range(SIZE)]
    axes: list = [None] * len(args)
    for i, arg in enumerate(args):
        if not hasattr(arg, "dtype") or arg.dtype.kind in "iu" or not choice >> i & 1:
            continue  # an integer may be a shape, which is the same for all examples
        axes[i] = (choice >> 8) % (arg.ndim + 1)
        for k, row in enumerate(rows):
            row[i] = varied(arg, k)
    return rows, axes


def varied(arg, k: int):
    """The ``k``-th example for ``arg``; only floating arguments vary."""
    return (arg * (1 + k / 32)).astype(arg.dtype)[()] if arg.dtype.kind in "fc" else arg


def stacked(rows: list, axes: list) -> list:
    """The arguments of a program that is mapped along these axes."""
    columns = zip(*rows, strict=True)
    return [
        c[0] if axis is None else np.stack(c, axis) for c, axis in zip(columns, axes, strict=True)
    ]


def results_of_loop(fn, rows) -> list:
    """The results for each list of arguments."""
    try:
        return [run_flat(fn, list(row)) for row in rows]
    except np.linalg.LinAlgError:
        reject()  # an example is, for instance, not positive definite


def a_program_maps_as_a_loop(fn, args, choice):
    rows, axes = batch_of(args, choice)

    expected = results_of_loop(fn, rows)
    mapped, out_axes = batch_program(fn, axes, SIZE)
    found = run_flat(lt.check(mapped), stacked(rows, axes))

    for i, axis in enumerate(out_axes):
        results = [row[i] for row in expected]
        wanted = results[0] if axis is None else np.stack(results)
        assert np.asarray(wanted).dtype == np.asarray(found[i]).dtype
        if is_wide(fn):
            assert_close(wanted, found[i], rtol=1e-6, atol=1e-6)


def is_wide(fn) -> bool:
    """Whether the whole program is in double precision, so that rounding is small."""
    types = [p.type for p in fn.params] + [b.type for bind in fn.binds for b in bind.binders]
    return all(t is None or t.dtype.char not in "efF" for t in types)


def loss_of(fn):
    """The sum of the real parts of all floating results."""

    def loss(*args):
        found = run_flat(fn, list(args))
        terms = [np.real(r).sum() for r in found if hasattr(r, "dtype") and r.dtype.kind in "fc"]
        return sum(terms, 0.0)

    return loss


def gradients_of_examples_are_the_gradient_of_the_batch(fn, args, choice):
    """vmap of grad = grad with respect to each example = grad of the sum over vmap."""
    rows, axes = batch_of(args, choice | 255)
    wrt = [i for i, a in enumerate(axes) if a is not None and args[i].dtype.kind == "f"]
    assume(wrt and any(arg.type.inexact for arg in fn.ret.args if arg.type is not None))
    loss, mapped = loss_of(fn), stacked(rows, axes)

    try:
        expected = [lt.grad(loss, tuple(wrt))(*row) for row in rows]
    except (lt.LetirError, np.linalg.LinAlgError):
        reject()  # the results do not depend on the arguments, or have no derivative
    found = lt.vmap(lt.grad(loss, tuple(wrt)), tuple(axes))(*mapped)
    total = lt.grad(lambda *xs: lt.vmap(loss, tuple(axes))(*xs).sum(), tuple(wrt))(*mapped)

    for k, i in enumerate(wrt):
        each = [row[k] for row in expected]
        assert_close(np.stack(each), found[k], rtol=1e-6, atol=1e-6)
        assert_close(np.stack(each, axes[i]), total[k], rtol=1e-6, atol=1e-6)


def a_batch_of_batches_is_a_loop_of_loops(fn, args, choice):
    rows, axes = batch_of(args, choice)
    outer = [None if axis is None or choice >> 4 & 1 << i else 0 for i, axis in enumerate(axes)]
    table = [
        [varied(a, k) if axis == 0 else a for a, axis in zip(row, outer, strict=True)]
        for k in range(2)
        for row in rows
    ]
    assume(any(a is not None and args[i].dtype.kind in "fc" for i, a in enumerate(outer)))
    given = [stacked(table[k * SIZE : (k + 1) * SIZE], axes) for k in range(2)]

    expected = results_of_loop(fn, table)
    inner, inner_axes = batch_program(fn, axes, SIZE)
    both, outer_axes = batch_program(inner, outer, 2)
    found = run_flat(lt.check(both), stacked(given, outer))

    for i, result in enumerate(found):
        wanted = np.stack([row[i] for row in expected])
        wanted = wanted.reshape(2, SIZE, *wanted.shape[1:])
        wanted = wanted if inner_axes[i] == 0 else wanted[:, 0]
        wanted = wanted if outer_axes[i] == 0 else wanted[0]
        assert_close(wanted, result, rtol=1e-6, atol=1e-6)


LAWS = {
    a_program_maps_as_a_loop: programs(ops=STEADY),
    gradients_of_examples_are_the_gradient_of_the_batch: programs(ops=STEADY, dtypes=DOUBLE),
    a_batch_of_batches_is_a_loop_of_loops: programs(ops=STEADY, dtypes=DOUBLE),
}


def holds(law, how: settings) -> None:
    """Run a law on generated programs."""

    @how
    @given(LAWS[law], st.integers(0, 2**16))
    def run(program, choice):
        with np.errstate(all="ignore"):
            try:
                law(*program, choice)
            except lt.GuardError:
                reject()  # the program was recorded for arguments of another kind

    run()


BY_NAME = {"argvalues": LAWS, "ids": lambda law: law.__name__}


@pytest.mark.hypothesis
@pytest.mark.parametrize("law", **BY_NAME)
def test_laws_hold_for_generated_programs(law):
    holds(law, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("law", **BY_NAME)
def test_laws_hold_for_10_000_generated_programs(law):
    holds(law, MANY)
