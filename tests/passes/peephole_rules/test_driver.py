"""peephole: shorter programs with the same results, to the last bit."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import letir as lt
from letir.ast.primitive import PRIMITIVES as OPS
from letir.ast.types import ArrayType
from letir.errors import LetirError
from letir.passes import peephole
from letir.passes.peephole_rules.algebra import is_power
from letir.passes.peephole_rules.movement import is_direct, only_splits_axes
from letir.testing import functions, programs
from tests.each_sample import in_one_test
from tests.passes.exactness import (
    DTYPES,
    assert_unchanged,
    gradient_of,
    new,
    ops,
    program,
    special,
)

SOME = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
SIGNED, FLOAT = "bhiq", "efd"
INT, REAL = SIGNED + "BHIQ", SIGNED + "BHIQefd"
NUMBERS = REAL + "FD"


def shortened(function, *types: ArrayType) -> list[str]:
    """The operations that ``peephole`` leaves of a function of Values."""
    return ops(peephole(program(function, *types)))


def made(name: str, x, *fill):
    """Zeros, ones or ``full(fill)`` of the type of ``x``, in its program."""
    op = OPS[name]
    return x.emitter.apply(op, fill, op.complete({"shape": x.shape, "dtype": x.dtype}))


# ---- neutral operations: (function, the dtypes for which the operation is removed) ----

NOTHING = {
    "x - 0": (lambda x: x - 0, NUMBERS),
    "x - 0.0": (lambda x: x - 0.0, "efdFD"),
    "x - -0.0": (lambda x: x - -0.0, ""),
    "x + 0": (lambda x: x + 0, INT),
    "x + -0.0": (lambda x: x + -0.0, FLOAT),
    "-0.0 + x": (lambda x: -0.0 + x, FLOAT),
    "x * 1": (lambda x: x * 1, REAL),
    "1.0 * x": (lambda x: 1.0 * x, FLOAT),
    "x * True": (lambda x: x * True, "?" + REAL),
    "x / 1": (lambda x: x / 1, FLOAT),
    "x // 1": (lambda x: x // 1, INT),
    "x ** 1": (lambda x: x**1, INT + FLOAT),
    "x | 0": (lambda x: x | 0, INT),
    "x ^ 0": (lambda x: x ^ 0, INT),
    "x & -1": (lambda x: x & -1, SIGNED),
    "x & True": (lambda x: x & True, "?"),
    "x and True": (lambda x: OPS["logical_and"](x, True), "?"),
    "x or False": (lambda x: OPS["logical_or"](False, x), "?"),
    "x xor False": (lambda x: OPS["logical_xor"](x, False), "?"),
    "x and x": (lambda x: OPS["logical_and"](x, x), "?"),
    "x & x": (lambda x: x & x, "?" + INT),
    "max(x, x)": (lambda x: OPS["maximum"](x, x), "?" + NUMBERS),
    "--x": (lambda x: OPS["neg"](-x), NUMBERS),
    "~~x": (lambda x: ~~x, "?" + INT),
    "not not x": (lambda x: OPS["logical_not"](OPS["logical_not"](x)), "?"),
    "conj conj x": (lambda x: OPS["conj"](OPS["conj"](x)), NUMBERS),
    "conj x": (OPS["conj"], REAL),
    "floor x": (OPS["floor"], INT),
    "x where x": (lambda x: OPS["where"](OPS["isnan"](x), x, x), "?" + NUMBERS),
    "x where True": (lambda x: OPS["where"](True, x, x * x), "?" + NUMBERS),
    "x + zeros": (lambda x: x + made("zeros", x), INT),
    "x - zeros": (lambda x: x - made("zeros", x), NUMBERS),
    "x - full of zeros": (lambda x: x - made("full", x, 0), NUMBERS),
    "x * ones": (lambda x: x * made("ones", x), "?" + REAL),
    "same cast": (lambda x: OPS["cast"](x, x.dtype), "?" + NUMBERS),
    "copy": (OPS["copy"], "?" + NUMBERS),
    "real": (OPS["real"], "?" + REAL),
    "same size": (lambda x: OPS["sum_to_size"](x, x.shape), "?" + NUMBERS),
    "x * 0": (lambda x: x * 0, ""),
    "x - x": (lambda x: x - x, ""),
    "x / x": (lambda x: x / x, ""),
}


@in_one_test
@pytest.mark.parametrize("name", NOTHING)
def test_neutral_operations_are_removed_where_they_change_no_bit(name):
    """[F4]: x * 0, x + 0 and x - x of floats stay."""
    function, dtypes = NOTHING[name]
    for dtype in DTYPES:
        kind = ArrayType(dtype, (12,))
        try:
            fn = program(lambda x: function(new(x)), kind)
        except LetirError:  # NumPy has no loop for these dtypes
            assert dtype.char not in dtypes
            continue

        gone = ops(peephole(fn)) == ops(program(new, kind))
        assert (dtype.char in dtypes) == gone, dtype
        assert_unchanged(peephole, fn, special(dtype))


@in_one_test
@pytest.mark.parametrize("name", NOTHING)
def test_memory_order_and_scalars_are_kept(name):
    function, dtypes = NOTHING[name]
    for dtype in map(np.dtype, dtypes):
        x = special(dtype).reshape(3, 4)
        views = [np.asfortranarray(x), x[::-1], x[:, ::2], np.broadcast_to(x[:1], (5, 4)), x[0, 0]]
        for arg in (*views, np.asarray(x[1, 1]), x[:0]):
            fn = program(lambda x: function(new(x)), ArrayType(dtype, arg.shape))
            assert_unchanged(peephole, fn, arg)
            assert_unchanged(peephole, program(function, ArrayType(dtype, arg.shape)), arg)


# ---- merged operations: (function, operations left for float64, and for other dtypes) ----

X = ArrayType(float, (3, 4))
SHORTER = {
    "--x": (lambda x: OPS["neg"](-x), ["positive"]),
    "x ** 2": (lambda x: x**2, ["mul"]),
    "x ** 2.0": (lambda x: x**2.0, ["mul"]),
    "x ** 0.5": (lambda x: x**0.5, ["sqrt"]),
    "x ** -1": (lambda x: x**-1.0, ["div"]),
    "x ** 3": (lambda x: x**3, ["power"]),
    "x / 8": (lambda x: x / 8, ["mul"]),
    "x / 3": (lambda x: x / 3, ["div"]),
    "abs -x": (lambda x: abs(-x), ["abs"]),
    "square -x": (lambda x: OPS["square"](-x), ["square"]),
    "abs abs x": (lambda x: abs(abs(x)), ["abs"]),
    "floor rint x": (lambda x: OPS["floor"](OPS["rint"](x)), ["rint"]),
    "x + -y": (lambda x: x[0] + -x[1], ["index", "index", "sub"]),
    "-x + y": (lambda x: -x[0] + x[1], ["index", "index", "sub"]),
    "x - -y": (lambda x: x[0] - -x[1], ["index", "index", "add"]),
    "-x * -y": (lambda x: -x[0] * -x[1], ["index", "index", "mul"]),
    "-x / -y": (lambda x: -x[0] / -x[1], ["index", "index", "div"]),
    "not not x": (lambda x: OPS["logical_not"](OPS["logical_not"](x)), ["not_equal"]),
    "x.T.T": (lambda x: x.T.T, []),
    "no transpose": (lambda x: x.transpose(0, 1), []),
    "flip flip": (lambda x: OPS["flip"](OPS["flip"](x, 1), -1), []),
    "expand squeeze": (lambda x: OPS["expand_dims"](x, 1).squeeze(1), []),
    "reshape back": (lambda x: x.reshape(3, 2, 2).reshape(3, 4), []),
    "reshape to a row": (lambda x: x.reshape(4, 3).reshape(12), ["reshape"]),
    "reshape of columns": (
        lambda x: x.T.reshape(2, 6).reshape(4, 3),
        ["transpose", "reshape", "reshape"],
    ),
    "reshape of rows": (
        lambda x: made("zeros", x).reshape(2, 6).reshape(4, 3),
        ["zeros", "reshape"],
    ),
    "broadcast": (
        lambda x: OPS["broadcast_to"](OPS["broadcast_to"](x, (2, 3, 4)), (5, 2, 3, 4)),
        ["broadcast_to"],
    ),
    "cast cast": (lambda x: x.astype("complex128").astype("complex64"), ["cast"]),
    "cast and back": (lambda x: x.astype("float32").astype("float64"), ["cast", "cast"]),
    "nested where": (
        lambda x: OPS["where"](c := x[0] > 0, OPS["where"](c, x[0], 1.0), x[1]),
        ["index", "greater", "index", "where", "index"],
    ),
    "size": (OPS["size"], ["constant"]),
}


@in_one_test
@pytest.mark.parametrize("name", SHORTER)
def test_pairs_of_operations_become_one(name):
    function, expected = SHORTER[name]

    # used by a sum: as a result it might have to be a new array
    assert sorted([*expected, "sum"]) == sorted(shortened(lambda x: function(x).sum(), X))


@in_one_test
@pytest.mark.parametrize("name", SHORTER)
def test_the_merged_operation_gives_the_bits_of_the_pair(name):
    function, _ = SHORTER[name]
    for dtype in DTYPES:
        x = special(dtype).reshape(3, 4)
        for arg in (x, np.asfortranarray(x), x[::-1], np.broadcast_to(x[:1], (3, 4))):
            try:
                fn = program(function, ArrayType(dtype, (3, 4)))
            except LetirError:
                continue
            assert_unchanged(peephole, fn, arg)


# ---- rules that depend on types: casts, reshapes, powers ----


@in_one_test
@pytest.mark.parametrize("first", DTYPES, ids=str)
def test_two_casts_are_merged_only_if_the_result_is_the_same(first):
    for second, third in itertools.product(DTYPES, DTYPES):
        fn = program(lambda x, s=second, t=third: x.astype(s).astype(t), ArrayType(first, (12,)))
        if is_direct(first, second, third):
            assert_unchanged(peephole, fn, special(first))
            if first.kind in "iu":
                assert_unchanged(peephole, fn, np.asarray(special(first) - 1, first))
        elif second != third:
            assert fn is peephole(fn)


def test_casts_that_round_twice_are_not_merged():
    assert not is_direct(np.dtype("i8"), np.dtype("f8"), np.dtype("f4"))
    assert not is_direct(np.dtype("f8"), np.dtype("f4"), np.dtype("f2"))
    assert is_direct(np.dtype("f4"), np.dtype("f8"), np.dtype("f2"))


def test_integers_lose_the_same_bits_through_another_width():
    assert is_direct(np.dtype("i8"), np.dtype("u4"), np.dtype("i2"))
    assert not is_direct(np.dtype("i8"), np.dtype("i2"), np.dtype("u4"))


SHAPES = [(12,), (1, 12), (3, 4), (4, 3), (2, 6), (2, 2, 3), (3, 1, 4), (12, 1), (6, 2), (3, 2, 2)]


def test_merging_two_reshapes_keeps_the_memory_layout():
    base = np.arange(96.0).reshape(6, 4, 4)
    views = [base[0, :3], base[0, :3].T, base[::2, :1, :], base[2, :3, ::2]]
    views += [np.broadcast_to(base[0, 0], (3, 4)), base[0, :3].copy("F"), base[:3, 0, :2]]
    for x, first, second in itertools.product(views, SHAPES, SHAPES):
        if np.prod(first) == np.prod(second) == x.size:
            kind = ArrayType(float, x.shape)
            assert_unchanged(
                peephole, program(lambda v, s=first, t=second: v.reshape(s).reshape(t), kind), x
            )


def test_only_splits_axes_distinguishes_splits_from_merges_of_axes():
    assert only_splits_axes((12,), (3, 4))
    assert only_splits_axes((3, 4), (3, 2, 2))
    assert only_splits_axes((3, 4), (1, 3, 1, 4, 1))
    assert not only_splits_axes((3, 4), (4, 3))
    assert not only_splits_axes((3, 4), (12,))


def test_is_power_holds_for_the_exponents_that_numpy_multiplies_out():
    assert is_power(np.dtype(float), 2.0)
    assert not is_power(np.dtype(float), 3.0)
    assert not is_power(np.dtype(complex), 2.0)


def test_two_sums_are_merged_where_the_order_of_additions_does_not_matter():
    """[D10]."""

    def function(x):
        return OPS["sum_to_size"](OPS["sum_to_size"](x, (3, 4)), (1, 4))

    for dtype in DTYPES:
        fn = program(function, ArrayType(dtype, (2, 3, 4)))
        x = np.tile(special(dtype), 2).reshape(2, 3, 4)
        assert_unchanged(peephole, fn, x)
        assert_unchanged(peephole, program(lambda x: function(new(x)), fn.params[0].type), x)

    row = ArrayType(np.int8, (5, 3))

    def twice(x):
        return OPS["sum_to_size"](OPS["sum_to_size"](new(x), (1, 3)), ())

    assert ["positive", "sum_to_size"] == shortened(twice, row)


# ---- generated programs ----


@SOME
@given(programs())
def test_results_of_generated_programs_are_unchanged(program):
    fn, args = program

    assert_unchanged(peephole, fn, *args)


@SOME
@given(programs(dtypes=[np.float64]))
def test_gradients_of_generated_programs_are_unchanged(program):
    try:
        df, args = gradient_of(*program)
    except LetirError:  # an operation without a derivative
        return

    assert_unchanged(peephole, df, *args)


@SOME
@given(functions())
def test_results_of_generated_functions_are_unchanged(drawn):
    f, args = drawn
    try:
        fn = lt.trace(f, *[arg.copy() for arg in args])
    except LetirError:
        return

    assert_unchanged(peephole, fn, *args)


def test_an_argument_is_overwritten_without_a_copy_of_it():
    def f(x, y):
        x[:] = x * y
        y[...] = y[::-1]  # a view is copied before arrays change
        return x

    program = lt.passes.dead_code(peephole(lt.trace(f, np.ones(3), np.ones(3))))

    assert [b.op.name for b in program.binds].count("index_set") == 1
    x, y = np.arange(3.0), np.arange(3.0) + 1
    lt.run_forward(program, x, y)
    assert np.array_equal(x, [0, 2, 6])
    assert np.array_equal(y, [3, 2, 1])


def test_nested_where_on_fortran_ordered_masks_is_unchanged():
    def function(c, a, b, d):
        a = a.T * 2
        return OPS["where"](c, OPS["where"](c, a, b), d.T * 2)

    kinds = [ArrayType(bool, (4, 3)), X, ArrayType(float, (4, 3)), X]
    columns = np.asfortranarray(np.ones((4, 3), bool))

    assert_unchanged(
        peephole,
        program(function, *kinds),
        columns,
        np.ones((3, 4)),
        np.ones((4, 3)),
        np.ones((3, 4)),
    )
