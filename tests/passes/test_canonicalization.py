"""canonicalize_ops and remove_implicit_expands: one spelling for each computation."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import letir as lt
from letir.ast.primitive import PRIMITIVES as OPS
from letir.ast.text.parser import parse
from letir.ast.types import ArrayType
from letir.errors import LetirError
from letir.passes import canonicalize_ops, remove_implicit_expands
from letir.testing import functions, programs
from tests.each_sample import in_one_test
from tests.passes.exactness import DTYPES, assert_unchanged, gradient_of, ops, program, special

SOME = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
X, ROW = ArrayType(float, (3, 4)), ArrayType(float, (4,))
SPELLINGS = {  # equivalent spellings -> the canonical one
    "mul(%0, 2)": ["mul(2, %0)"],
    "add(%0, 2)": ["add(2, %0)"],
    "less(%0, 2)": ["greater(2, %0)"],
    "less_equal(%0, %1)": ["greater_equal(%1, %0)"],
    "equal(%0, 2)": ["equal(2, %0)"],
    "equal(%0, %1)": ["equal(%1, %0)"],
    "mul(%0, %0)": ["square(%0)", "power(%0, 2)"],
    "div(1, %0)": ["reciprocal(%0)"],
    "neg(%0)": ["mul(%0, -1)", "mul(-1.0, %0)", "div(%0, -1)", "sub(-0.0, %0)"],
    "sum(%0, axis=1)": ["sum(%0, axis=-1)", "sum(%0, axis=(-1,))"],
    "sum(%0)": ["sum(%0, axis=(0, 1))", "sum(%0, axis=(-1, 0))"],
    "transpose(%0)": ["transpose(%0, axes=(1, 0))", "transpose(%0, axes=(-1, 0))"],
    "expand_dims(%0, axis=2)": ["expand_dims(%0, axis=-1)"],
    "flip(%0, axis=(0, 1))": ["flip(%0, axis=(-1, -2))"],
    "concatenate(%0, %1, axis=1)": ["concatenate(%0, %1, axis=-1)"],
    "stack(%0, %1, axis=2)": ["stack(%0, %1, axis=-1)"],
    "reshape(%0, shape=(2, 6))": ["reshape(%0, shape=(2, -1))"],
}
KEPT = [  # different bits, or another meaning
    "add(%1, %0)",
    "mul(%1, %0)",
    "mul(nan, %0)",
    "maximum(0.0, %0)",
    "sub(0.0, %0)",
    "power(%0, 3)",
    "sub(%0, 2)",
    "argmax(%0)",
    "squeeze(%0)",
]


def spelled(text: str) -> lt.Lambda:
    """The program of one operation on two matrices."""
    head = "lambda %0: float64[3, 4], %1: float64[3, 4]"
    fn = parse(f"{head} {{ %2 = {text}; return %2 }}")
    return lt.retype(fn, X, X)


@in_one_test
@pytest.mark.parametrize("word", SPELLINGS)
def test_equivalent_spellings_become_one(word):
    """[F3]."""
    expected = spelled(word)
    assert expected is canonicalize_ops(expected)
    for other in SPELLINGS[word]:
        assert expected == canonicalize_ops(spelled(other)), other


@pytest.mark.parametrize("text", KEPT)
def test_a_spelling_is_kept_where_another_could_change_a_bit(text):
    fn = spelled(text)

    assert fn is canonicalize_ops(fn)


def test_a_split_into_equal_parts_is_written_as_their_number():
    def parts(sections, axis):
        fn = program(lambda x: OPS["split"](x, sections, axis), X)
        return dict(canonicalize_ops(fn).binds[0].attrs)

    assert {"sections": 2, "axis": 1} == parts((2,), -1)
    assert {"sections": (1,), "axis": 1} == parts((1,), 1)
    assert {"sections": (2, 0), "axis": 1} == parts((2, 0), 1)


def test_bitwise_operations_on_booleans_become_logical_ones():
    def function(x):
        c, d = x > 1, x < 3
        return ~(c & d) ^ (c | d)

    assert set(ops(canonicalize_ops(program(function, X)))) == {
        *("less", "greater", "logical_and", "logical_not", "logical_xor", "logical_or")
    }


def test_a_condition_is_not_negated():
    fn = program(lambda x, y: OPS["where"](OPS["logical_not"](x > 1), x, y), ROW, ROW)

    assert ["greater", "where"] == ops(canonicalize_ops(fn))
    assert_unchanged(canonicalize_ops, fn, np.arange(4.0), np.ones(4))


@in_one_test
@pytest.mark.parametrize("word", SPELLINGS)
def test_the_canonical_spelling_gives_the_same_bits(word):
    for text, dtype in itertools.product(SPELLINGS[word], DTYPES):
        try:
            fn = lt.retype(spelled(text), *[ArrayType(dtype, (3, 4))] * 2)
        except LetirError:
            continue
        x = special(dtype).reshape(3, 4)
        for args in ([x, x[::-1]], [np.asfortranarray(x), x], [x.T.copy().T, np.roll(x, 1)]):
            assert_unchanged(canonicalize_ops, fn, *args)


# ---- remove_implicit_expands ----


def test_an_explicit_broadcast_before_an_operation_that_broadcasts_is_removed():
    """[F3]."""

    def function(x, row):
        wide = OPS["broadcast_to"](row, (3, 4))
        return OPS["where"](x > wide, x * wide, wide) / wide

    fn = program(function, X, ROW)
    found = remove_implicit_expands(fn)

    assert "broadcast_to" not in ops(found)
    assert_unchanged(
        remove_implicit_expands, fn, special(np.dtype(float)).reshape(3, 4), np.ones(4)
    )


def test_one_operand_keeps_its_explicit_broadcast():
    fn = program(lambda row: (wide := OPS["broadcast_to"](row, (3, 4))) * wide, ROW)

    assert ["broadcast_to", "mul"] == ops(remove_implicit_expands(fn))


@pytest.mark.parametrize(
    "function",
    [
        lambda row: OPS["broadcast_to"](row, (3, 4)),
        lambda row: OPS["broadcast_to"](row, (3, 4)).sum(0),
        lambda row: OPS["broadcast_to"](row, (3, 4)).astype("float32"),
        lambda row: -OPS["broadcast_to"](row, (3, 4)),
        lambda row: OPS["stop_gradient"](OPS["broadcast_to"](row, (3, 4))),
        lambda row: row * 2,
    ],
)
def test_a_broadcast_that_an_operation_needs_is_kept(function):
    fn = program(function, ROW)

    assert fn is remove_implicit_expands(fn)


def test_an_explicit_0d_array_stays_a_0d_array():
    fn = program(lambda x: OPS["broadcast_to"](x * 2, ()).astype("float32"), ArrayType(float))

    assert fn is remove_implicit_expands(fn)
    assert_unchanged(remove_implicit_expands, fn, np.float64(1.0))


def test_a_number_made_an_array_stays_one_where_it_widens_the_dtype():
    fn = parse(
        "lambda %0: float64*[], %1: float32[3] { %2: float64[3] = broadcast_to(%0, shape=(3,)); "
        "%3: float64[3] = mul(%2, %1); return %3 }"
    )

    assert fn is remove_implicit_expands(fn)


# ---- generated programs ----


@pytest.mark.hypothesis
@pytest.mark.parametrize("change", [canonicalize_ops, remove_implicit_expands])
def test_results_of_generated_programs_are_unchanged(change):
    @SOME
    @given(programs(max_steps=20))
    def run(program):
        fn, args = program
        assert_unchanged(change, fn, *args)
        assert change(fn) is change(fn) or change(change(fn)) == change(fn)

    run()


@pytest.mark.hypothesis
@pytest.mark.parametrize("change", [canonicalize_ops, remove_implicit_expands])
def test_gradients_of_generated_functions_are_unchanged(change):
    @SOME
    @given(functions(smooth=True))
    def run(drawn):
        f, args = drawn
        try:
            df, given = gradient_of(lt.trace(f, *[arg.copy() for arg in args]), args)
        except (LetirError, ValueError, ArithmeticError):
            return
        assert_unchanged(change, df, *given)

    run()
