"""``vmap``: axes, nesting, errors, custom rules, and operations without a batch rule."""

import functools
import weakref
from collections import namedtuple

import numpy as np
import pytest

import letir as lt
from letir.ast.text.parser import parse
from letir.ast.types import ArrayType
from letir.scripting.operations import script_op
from letir.testing import assert_close, assert_same
from letir.transforms import repeated_programs as programs
from tests.each_sample import in_one_test

X = np.linspace(-1.0, 1.2, 12).reshape(4, 3)
W = np.linspace(-0.7, 0.9, 6).reshape(2, 3)


# ---- vmap of functions ----


def test_vmap_agrees_with_a_loop():
    def f(x, w):
        return np.tanh(w @ x).sum(), x[::-1]

    found = lt.vmap(f, in_axes=(0, None))(X, W)

    assert_close(tuple(map(np.stack, zip(*[f(x, W) for x in X], strict=True))), found)


def test_vmap_of_grad_is_the_gradient_of_each_example():
    def loss(x, w):
        return np.tanh(w @ x).sum()

    found = lt.vmap(lt.grad(loss, 1), in_axes=(0, None))(X, W)

    assert_close(np.stack([lt.grad(loss, 1)(x, W) for x in X]), found)


def test_a_matrix_times_mapped_vectors_is_one_product():
    fn = lt.trace(lambda w, x: w @ x, W, X[0])

    program = lt.vmap(fn, in_axes=(None, 0), axis_size=4)

    assert "%2 = transpose %0, None\n%3 = matmul %1, %2\nreturn %3\n" == program.listing()


def test_results_that_do_not_depend_on_mapped_arguments_are_broadcast():
    assert_same((X, np.full(4, 2.0)), lt.vmap(lambda x: (x, 2.0))(X))


# ---- arguments and results ----

Pair = namedtuple("Pair", "a b")


def test_axes_are_prefixes_of_trees():
    def f(pair, options):
        return {"sum": pair.a.sum() + options["scale"] * pair.b, "rest": (pair.b, None)}

    found = lt.vmap(f, in_axes=(Pair(1, 0), {"scale": None}), out_axes={"sum": 0, "rest": 0})(
        Pair(X.T, np.arange(4.0)), {"scale": 2.0}
    )

    assert_close(X.sum(axis=1) + 2 * np.arange(4.0), found["sum"])
    assert_same((np.arange(4.0), None), found["rest"])


def test_axes_count_from_the_end_too():
    found = lt.vmap(lambda x: (x, x.sum()), in_axes=-1, out_axes=(-1, -1))(X)

    assert_close((X, X.sum(axis=0)), found)


def test_keyword_arguments_are_mapped_along_their_first_axis():
    assert_same(X * np.arange(4.0)[:, None], lt.vmap(lambda x, *, y: x * y)(X, y=np.arange(4.0)))


def test_booleans_strings_and_none_are_static():
    def f(x, mode, bias, negate):
        assert (mode, bias, negate) == ("sum", None, True)
        return -x.sum()

    assert_close(-X.sum(axis=1), lt.vmap(f)(X, "sum", None, negate=True))


class Layer:
    """A callable that holds an array."""

    def __init__(self):
        self.weight = np.array([1.0, 2.0, 3.0])

    def forward(self, x):
        return self.weight @ x


def test_vmap_accepts_methods_partials_and_decorated_functions():
    layer, expected = Layer(), X @ np.array([1.0, 2.0, 3.0])

    assert_close(expected, lt.vmap(layer.forward)(X))
    assert_close(expected, lt.vmap(functools.partial(Layer.forward, layer))(X))
    assert_close(2 * X, doubled(X))


@lt.vmap
def doubled(x):
    return 2 * x


def test_a_call_without_mapped_arguments_needs_axis_size():
    assert_close(np.full(3, X.sum()), lt.vmap(np.sum, in_axes=None, axis_size=3)(X))
    with pytest.raises(lt.ShapeError, match="pass axis_size"):
        lt.vmap(np.sum, in_axes=None)(X)


@pytest.mark.parametrize("size", [0, 1])
def test_vmap_takes_batches_of_zero_and_one_example(size):
    x = X[:size]

    assert_close((2 * x, x.sum(axis=1)), lt.vmap(lambda v: (2 * v, v.sum()))(x))
    assert_close(2 * x, lt.vmap(lt.grad(lambda v: (v**2).sum()))(x))


def test_results_of_vmap_share_no_memory_with_arguments():
    """[C4]"""
    for f in (lambda x: x, lambda x: x[0], lambda x: x[::-1]):
        found = lt.vmap(f)(X)

        assert found.flags.writeable
        assert not np.shares_memory(found, X)


def test_a_mapped_python_number_is_an_element_of_an_array():
    fn = lt.trace(lambda s, x: s * x, 2.0, X[0].astype(np.float32))
    numbers, rows = np.arange(4.0), X.astype(np.float32)

    assert_same(numbers[:, None] * rows, lt.vmap(fn, axis_size=4)(numbers, rows))
    assert lt.vmap(fn, in_axes=(None, 0))(2.0, rows).dtype == np.float32


# ---- errors ----


@pytest.mark.parametrize(
    ("in_axes", "args", "error", "message"),
    [
        ((0,), (X, X), lt.ShapeError, r"in_axes has 1 entries for 2 positional arguments"),
        (
            ({"a": 0},),
            (X,),
            lt.ShapeError,
            r"is not a prefix of the arguments, which nest as \(\*,\)",
        ),
        (2, (X,), lt.BoundsError, r"in_axes says axis 2 of x, which has rank 2"),
        (0, (X, 3.0), lt.BoundsError, r"in_axes says axis 0 of y, which has rank 0\n  pass None"),
        (0, (np.array(["a"]),), lt.DTypeError, r"vmap: x: letir computes with"),
        (True, (X,), lt.DTypeError, r"in_axes takes ints \(or None\), found True"),
        ((0, 1), (X, X), lt.ShapeError, r"x has 4 along axis 0\n  y has 3 along axis 1"),
    ],
)
def test_axes_that_do_not_fit_are_errors(in_axes, args, error, message):
    with pytest.raises(error, match=message):
        lt.vmap(lambda x, y=0: x, in_axes=in_axes)(*args)


def test_a_mapped_result_needs_an_axis():
    with pytest.raises(lt.ShapeError, match="out_axes is None for result 1, which depends on"):
        lt.vmap(lambda x: (x, x.sum()), out_axes=(0, None))(X)


def test_a_shared_result_may_stay_unbatched():
    assert_same((X, 2.0), lt.vmap(lambda x: (x, 2.0), out_axes=(0, None))(X))


def test_branching_on_a_mapped_value_is_an_error_with_the_line():
    with pytest.raises(
        lt.TraceError, match=r"test_vmapping.py:\d+\n(.|\n)*vmap records one example"
    ):
        lt.vmap(lambda x: x if x[0] > 0 else -x)(X)


def test_branching_on_a_shared_value_records_a_guard():
    """[C5]"""
    fn = lt.trace(lambda x, n: lt.vmap(lambda v: v * 2 if n > 1 else v)(x), X, 2)

    assert "guard" in [bind.op.name for bind in fn.binds]
    assert_same(2 * X, fn(X, 2))


def test_a_program_with_a_guard_on_a_mapped_value_is_refused():
    """[C5]"""
    fn = lt.trace(lambda x: x if x[0] < 0 else -x, X[0])

    with pytest.raises(lt.TraceError, match="chose its path where a mapped value was True"):
        lt.vmap(fn, axis_size=4)


# ---- programs ----


def test_a_program_gives_a_program_for_any_number_of_examples():
    fn = lt.trace(lambda x, w: np.tanh(w @ x).reshape(2, 1), X[0], W)

    mapped = lt.vmap(fn, in_axes=(0, None))

    assert mapped.params[0].type.shape == (lt.Size.named("batch"), 3)
    assert_close(np.tanh(X @ W.T)[..., None], mapped(X, W))
    assert_close(np.tanh(X[:2] @ W.T)[..., None], mapped(X[:2], W))


def test_each_example_is_indexed_by_its_own_indices():
    fn = lt.trace(lambda x, i: x[i], X[0], np.array([0, 2]))
    places = np.array([[0, 1], [1, 1], [2, 0], [0, 0]])

    for mapped in (lt.vmap(fn), lt.vmap(fn, axis_size=4)):
        assert_same(np.take_along_axis(X, places, 1), mapped(X, places))


def test_a_program_that_needs_the_batch_size_takes_axis_size():
    index = "%2: float64[1] = index(%0, %1, item=@1)"
    fn = parse(f"lambda %0: float64[3], %1: bool[3] {{ {index}; return %2 }}")

    with pytest.raises(lt.ShapeError, match="pass axis_size"):
        lt.vmap(fn)
    one_each = lt.vmap(fn, axis_size=3)(X[:3], np.eye(3) > 0)
    assert_same(np.diag(X)[:, None].copy(), one_each)


def test_types_that_follow_from_the_parameters_may_be_missing():
    fn = parse("lambda %0: float64[3], %1: float64[] { %2 = exp(%0); %3 = mul(%2, %1); return %3 }")

    assert_close(np.exp(X) * 2.0, lt.vmap(fn, in_axes=(0, None))(X, np.float64(2.0)))


def test_a_program_without_parameter_types_is_an_error():
    fn = parse("lambda %0, %1 { %2 = mul(%0, %1); return %2 }")

    with pytest.raises(lt.MissingRule, match=r"give the program types: letir.retype"):
        lt.vmap(fn, axis_size=3)


def test_a_gradient_maps_as_its_joined_program():
    gradient = lt.differentiate(lt.trace(lambda x: x * x, X[0]))

    out, (ct,) = lt.vmap(gradient)(X, np.ones_like(X))

    assert_close((X * X, 2 * X), (out, ct))


# ---- nesting ----


def test_vmap_nests_with_itself_and_with_derivatives():
    def f(x, y):
        return np.sin(x) * y**2

    xs, ys = np.arange(3.0), np.arange(2.0)
    table = lt.vmap(lt.vmap(f, in_axes=(None, 0)), in_axes=(0, None))

    assert_close(np.sin(xs)[:, None] * ys**2, table(xs, ys))
    assert_close(np.cos(xs) * (ys**2).sum(), lt.grad(lambda x: table(x, ys).sum())(xs))
    assert_close(
        (np.cos(xs)[:, None] * ys**2), lt.jvp(lambda x: table(x, ys), (xs,), (np.ones(3),))[1]
    )
    assert_close(-np.sin(xs), lt.vmap(lt.grad(lt.grad(lambda x: f(x, 1.0))))(xs))
    assert_close(-np.sin(xs), lt.grad(lambda x: lt.vmap(lt.grad(lambda v: f(v, 1.0)))(x).sum())(xs))


def test_traced_values_of_an_enclosing_trace_are_shared():
    fn = lt.trace(lambda w, x: lt.vmap(lambda v: w @ v)(x), W, X)

    assert_close(X @ W.T, fn(W, X))
    assert ["transpose", "matmul"] == [bind.op.name for bind in fn.binds]


# ---- custom rules ----


@lt.custom_vjp
def tenfold(x, s):
    return x * s


tenfold.defvjp(lambda x, s: (x * s, (x, s)), lambda kept, ct: (10 * ct * kept[1], ct * kept[0]))


def test_a_custom_rule_survives_vmap():
    xs = np.arange(3.0)

    assert_close(np.full(3, 20.0), lt.vmap(lt.grad(lambda x: tenfold(x, 2.0)))(xs))
    assert_close(
        np.full(3, 20.0), lt.grad(lambda x: lt.vmap(lambda v: tenfold(v, 2.0))(x).sum())(xs)
    )


def test_a_custom_rule_sums_the_cotangents_of_a_shared_argument():
    xs = np.arange(3.0)

    assert_close(3.0, lt.grad(lambda s: lt.vmap(lambda v: tenfold(v, s))(xs).sum())(2.0))


@lt.custom_jvp
def product(x, s):
    return x * s


@product.defjvp
def product_rule(primals, tangents):
    (x, s), (dx, ds) = primals, tangents
    return product(x, s), 10 * dx * s + x * ds


def test_a_custom_forward_rule_survives_in_both_modes():
    xs, ones = np.arange(3.0), np.ones(3)
    mapped = lt.vmap(product, in_axes=(0, None))

    assert_close(np.full(3, 20.0), lt.jvp(lambda x: mapped(x, 2.0), (xs,), (ones,))[1])
    assert_close(np.full(3, 20.0), lt.grad(lambda x: mapped(x, 2.0).sum())(xs))
    assert_close(np.full(3, 20.0), lt.vmap(lt.grad(product), in_axes=(0, None))(xs, 2.0))
    assert_close(3.0, lt.grad(lambda s: mapped(xs, s).sum())(2.0))


def test_vmap_of_a_checkpoint_is_a_checkpoint():
    f = lt.checkpoint(lambda x: np.tanh(np.sin(x)).sum())

    fn = lt.trace(lt.vmap(f), X)

    assert ["checkpoint"] == [bind.op.name for bind in fn.binds]
    assert_close(np.stack([f(x) for x in X]), fn(X))
    assert_close(np.stack([lt.grad(f)(x) for x in X]), lt.grad(lambda x: lt.vmap(f)(x).sum())(X))


@script_op("t.through")
def through(x, s):
    """x * s, with a gradient that is not its derivative."""

    def backward(g):
        return 10 * g * s, g * x

    return x * s, backward


def test_a_composite_keeps_its_own_gradient():
    xs = np.arange(3.0)

    assert_close(np.full(3, 20.0), lt.vmap(lt.grad(lambda x: through(x, 2.0)))(xs))
    assert_close(
        np.full(3, 20.0), lt.grad(lambda x: lt.vmap(lambda v: through(v, 2.0))(x).sum())(xs)
    )
    assert_close(3.0, lt.grad(lambda s: lt.vmap(lambda v: through(v, s))(xs).sum())(2.0))
    assert_close(2 * xs, lt.vmap(lambda v: through(v, 2.0))(xs))


def test_vmap_loops_over_an_operation_without_a_rule_and_reports_it():
    spread = lt.opaque(
        lambda x: x * x, ArrayType(float, (3,)), vjp=lambda ct, y, x: (2 * ct * x,), name="t.square"
    )

    fn = lt.trace(lt.vmap(spread), X)

    assert ["looped"] == [bind.op.name for bind in fn.binds]
    assert_close(X * X, fn(X))
    assert_close(2 * X, lt.vmap(lt.grad(lambda x: spread(x).sum()))(X))
    assert_close(2 * X, lt.grad(lambda x: lt.vmap(spread)(x).sum())(X))


# ---- random numbers ----


def test_a_shared_key_gives_all_examples_the_same_mask():
    """[B9]"""
    key, x = np.array([7, 11], np.uint64), np.ones((4, 8))

    found = lt.vmap(lt.nn.dropout, in_axes=(0, None))(x, key)

    assert_same(np.stack([lt.nn.dropout(v, key) for v in x]), found)


def test_a_mapped_key_gives_each_example_its_own_mask():
    """[B9]"""
    keys, x = np.arange(8, dtype=np.uint64).reshape(4, 2), np.ones((4, 8))

    found = lt.vmap(lt.nn.dropout)(x, keys)

    assert_same(np.stack([lt.nn.dropout(v, k) for v, k in zip(x, keys, strict=True)]), found)


# ---- repeated calls ----

SHARED = np.arange(3.0)
ROW, BATCH = np.array([0.5, -1.0, 2.0]), np.linspace(-1.0, 2.0, 12).reshape(4, 3)
GIVEN = {
    "arrays": ((BATCH, ROW), {}),
    "other values": ((BATCH + 1.0, ROW - 1.0), {}),
    "another size": ((BATCH[:2], ROW), {}),
    "another shape": ((BATCH[:, :2], ROW), {}),
    "another type": ((BATCH.astype("float32"), ROW), {}),
    "a number": ((BATCH, 2.0), {}),
    "an integer": ((BATCH, 2), {}),
    "a keyword": ((BATCH, ROW), {"by": BATCH[:, 0]}),
    "two sizes": ((BATCH, ROW), {"by": BATCH[:2, 0]}),
    "a flag": ((BATCH, ROW, True), {}),
    "a text": ((BATCH, ROW, "text"), {}),
    "a tree": (({"x": BATCH}, ROW), {}),
    "the same array": ((BATCH, BATCH), {}),
    "a scalar": ((1.0, ROW), {}),
    "a list": (([1.0, 2.0], ROW), {}),
}


def weighted(x, w, flag=None, by=1.0):
    x = x["x"] if type(x) is dict else x
    return x * w * by, w, {"flag": flag is None}["flag"] * x.sum()


def found(mapped, given):
    """The bits of the results, or the error."""
    args, kwargs = given
    try:
        results = mapped(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    return [(type(r), r.dtype, r.shape, r.strides, r.tobytes()) for r in results]


@in_one_test
@pytest.mark.parametrize("known", GIVEN)
@pytest.mark.parametrize("axes", [((0, None), 0), (0, 0), ([0, None], 0), ((0, None), (-1, 0, 0))])
def test_a_repeated_call_gives_what_a_recorded_one_does(known, axes):
    mapped, first = lt.vmap(weighted, *axes), {}
    for kind, given in GIVEN.items():
        forget_calls()
        first[kind] = found(mapped, given)
    forget_calls()
    for _ in range(9):
        found(mapped, GIVEN[known])

    for kind, given in GIVEN.items():
        assert (kind, found(mapped, given)) == (kind, first[kind])


def forget_calls():
    """Forget the calls of all functions."""
    for kept in (programs._plans, programs._seen, programs._functions):
        kept.clear()


def test_axes_in_a_list_may_change():
    axes, f = [0, None], lambda x, w: x * w
    mapped = lt.vmap(f, axes)
    for _ in range(9):
        assert mapped(BATCH, ROW).shape == (4, 3)
    axes[:] = None, 0

    assert mapped(BATCH, ROW).shape == (3, 4, 3)


def test_axes_belong_to_what_is_known():
    for _ in range(9):
        f = weighted
        for axis in (0, 1):
            rows = lt.vmap(f, (axis, None), (axis, None, 0))(np.ones((3, 3)), ROW)[0]
            assert_same(np.tile(ROW, (3, 1)) if axis == 0 else np.tile(ROW[:, None], (1, 3)), rows)


def test_repeated_calls_share_no_memory_and_keep_no_argument_alive():
    mapped = lt.vmap(lambda x, w: (x, w, SHARED, SHARED[1:]), (0, None), (0, None, None, None))
    for _ in range(9):
        x, w = BATCH.copy(), ROW.copy()
        results = mapped(x, w)
        for array in results:
            assert not any(np.may_share_memory(array, other) for other in (x, w, SHARED))
            array[...] = np.nan
        assert_same((BATCH, ROW, SHARED, SHARED[1:]), mapped(x, w))
    alive = [weakref.ref(x), weakref.ref(w)]
    del x, w

    assert [None, None] == [reference() for reference in alive]
