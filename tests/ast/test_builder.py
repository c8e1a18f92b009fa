"""``LetBuilder``: how programs are built, and the Values that rules compute with."""

import numpy as np
import pytest

import letir.ops  # noqa: F401  registers all operations
from letir.ast.attrs import Attrs, freeze
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Const, Source
from letir.ast.text.parser import parse
from letir.ast.text.printer import dumps
from letir.ast.types import ArrayType, Size, Undef
from letir.errors import DTypeError, InternalError, ShapeError

FLOATS = ArrayType(float, (3,))


def built(function, *types) -> str:
    """The text of the program that ``function`` builds from parameters of these types."""
    builder = LetBuilder()
    out = function(*map(builder.param, types))
    return dumps(builder.build(out if isinstance(out, tuple) else (out,)))


def test_a_program_has_params_binds_in_order_and_results():
    """[A1]"""
    builder = LetBuilder()
    x = builder.param(FLOATS, "x")
    y = x * 2.0

    assert builder.build([y, x, 1]) == parse(
        "lambda %0:x: float64[3] { %1: float64[3] = mul(%0, 2.0); return %1, %0, 1 }"
    )


def test_types_are_inferred():
    text = built(lambda x, y: x @ y, ArrayType("float32", (2, 3)), ArrayType(float, (3, 4)))

    assert "%2: float64[2, 4] = matmul(%0, %1)" in text


def test_symbolic_sizes_go_through_type_rules():
    """[B10]"""
    text = built(lambda x: x[None] + x, ArrayType(float, (Size.named("n"),)))

    assert "float64[1, n] = index" in text and "float64[1, n] = add" in text


def test_a_result_has_unknown_type_if_an_operand_has():
    """[A1] Unknown types."""
    assert built(lambda x, y: x + y, FLOATS, None) == (
        "lambda %0: float64[3], %1 {\n  %2 = add(%0, %1)\n  return %2\n}"
    )


def test_an_operation_with_several_results_binds_several_locals():
    """[A1]"""
    split = PRIMITIVES["split"]

    text = built(lambda x: split(x, 3), FLOATS)
    assert "%1: float64[1], %2: float64[1], %3: float64[1] = split(%0, sections=3)" in text


def test_an_array_that_is_not_a_param_is_bound_as_a_constant():
    """[A1]"""
    text = built(lambda x: x + np.arange(3), FLOATS)

    assert "%1: int64[3] = constant(value=int64[3]{0, 1, 2})" in text


def test_a_constant_is_copied_and_frozen_when_it_is_bound():
    """[A1]"""
    array, builder = np.zeros(2), LetBuilder()
    builder.constant(array)
    array[:] = 1

    (kept,) = (bind.attrs["value"] for bind in builder.binds)
    assert kept.tolist() == [0, 0] and not kept.flags.writeable


def test_a_frozen_array_is_not_copied_again():
    frozen = freeze(np.arange(3))

    assert freeze(frozen) is frozen


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_frozen_arrays_own_their_memory_in_native_byte_order(shape):
    array = np.ones(shape, ">f4").T
    frozen = freeze(array)

    assert frozen.flags.owndata and frozen.dtype.isnative
    assert frozen.strides == array.strides  # BLAS rounds by the memory order
    assert frozen.shape == shape[::-1]


def test_a_read_only_view_of_a_mutable_array_is_copied():
    array = np.zeros(3)
    view = array[:]
    view.flags.writeable = False

    assert not np.shares_memory(freeze(view), array)


def test_every_bind_gets_the_current_source():
    builder = LetBuilder()
    x = builder.param(FLOATS)
    builder.source = Source("model.py", 7)
    builder.build([-x])

    assert str(builder.binds[0].source) == "model.py:7"


def test_an_error_of_a_type_rule_names_the_let_line_and_the_users_line():
    builder = LetBuilder()
    x, y = builder.param(FLOATS, "x"), builder.param(ArrayType(float, (4,)))
    builder.source = Source("model.py", 7)

    with pytest.raises(ShapeError, match=r"\(3,\), \(4,\)(?s:.*)add\(.*(?s:.*)model.py:7"):
        x + y


def test_undef_none_and_numbers_may_be_operands():
    """[A1]"""
    builder = LetBuilder()

    assert [builder.enter(v) for v in (Undef, None, 1j)] == [Const(Undef), Const(None), Const(1j)]


@pytest.mark.parametrize("operand", ["text", [1.0], {}, object()])
def test_other_objects_are_refused_as_operands(operand):
    with pytest.raises(DTypeError):
        LetBuilder().enter(operand)


def test_a_value_of_another_builder_is_refused():
    with pytest.raises(InternalError):
        LetBuilder().enter(LetBuilder().param(FLOATS))


def test_inlining_substitutes_arguments_for_parameters():
    inner = parse("lambda %0:x, %1 { %2:h = mul(%0, %1); return (%2, %0, 3) }")
    builder = LetBuilder()
    x = builder.param(FLOATS)
    results = builder.inline(inner, [x.arg, Const(2.0)])

    assert builder.build(results) == parse(
        "lambda %0: float64[3] { %1: float64[3] = mul(%0, 2.0); return (%1, %0, 3) }"
    )


def test_inlining_twice_gives_fresh_locals():
    inner = parse("lambda %0 { %1 = exp(%0); return %1 }")
    builder = LetBuilder()
    x = builder.param()
    (y,) = builder.call(inner, [x])
    builder.call(inner, [y])

    assert len({binder for bind in builder.binds for binder in bind.binders}) == 2


def test_inlining_with_the_wrong_number_of_arguments_is_an_error():
    with pytest.raises(ValueError):
        LetBuilder().inline(parse("lambda %0 { return %0 }"), [])


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (lambda x: x + 1, "add(%0, 1)"),
        (lambda x: 1 - x, "sub(1, %0)"),
        (lambda x: x**2, "power(%0, 2)"),
        (lambda x: x / x, "div(%0, %0)"),
        (lambda x: -x, "neg(%0)"),
        (lambda x: x < 1.0, "less(%0, 1.0)"),
        (lambda x: x == x, "equal(%0, %0)"),
        (lambda x: x[1:], "index(%0, item=1:)"),
        (lambda x: x.sum(axis=0), "sum(%0, axis=0)"),
        (lambda x: x.reshape(3, 1), "reshape(%0, shape=(3, 1))"),
        (lambda x: x.at[0].set(2.0), "index_set(%0, 2.0, item=0)"),
    ],
)
def test_operators_and_methods_of_values_record_operations(function, line):
    assert f" = {line}\n" in built(function, FLOATS)


def test_operators_on_python_numbers_alone_return_a_python_number():
    """[A1] Weak types."""
    text = built(lambda x: x * 2, ArrayType(float, (), weak=True))

    assert text.splitlines()[-2:] == ["  return %2", "}"] and "%2: float64*[] = weaken(%1)" in text


def test_values_are_unhashable_and_their_equality_has_no_truth_value():
    with pytest.raises(TypeError):
        hash(LetBuilder().param(FLOATS))


def test_a_bind_made_by_emit_has_the_given_attributes():
    builder = LetBuilder()
    x = builder.param(FLOATS)
    op = PRIMITIVES["sum"]
    (out,) = builder.emit(op, (x.arg,), op.complete({"axis": 0}))

    assert out.type is ArrayType(float)
    assert builder.binds[0].attrs == Attrs(axis=0, dtype=None, keepdims=False, initial=None)


def test_a_ufunc_on_a_value_emits_its_operation():
    builder = LetBuilder()
    x = builder.param(ArrayType(float, (3,)))

    found = builder.build([np.exp(x) * x, np.ones(3) * x])

    assert ["exp", "mul", "constant", "mul"] == [bind.op.name for bind in found.binds]


@pytest.mark.parametrize("kind", [None, ArrayType(float, (2,))])
def test_a_program_is_not_built_from_a_single_result(kind):
    builder = LetBuilder()
    x = builder.param(kind)

    for result in (x, x.arg):
        with pytest.raises(DTypeError, match=r"write build\(\[result\]\)"):
            builder.build(result)


def test_a_value_of_unknown_shape_cannot_be_iterated_over():
    builder = LetBuilder()

    with pytest.raises(ShapeError, match="has no known shape"):
        _, _ = builder.param()
