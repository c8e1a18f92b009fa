"""Every operation exports, and gives its numbers elsewhere, or says why there is no form of it."""

import warnings

import numpy as np
import onnx
import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.ast.record_fields import is_final
from letir.onnx.exporting.error_conditions import names_with_conditions
from letir.onnx.exporting.node_graph import (
    program_for,
    refusal_of,
    registered_names,
    rule_for,
)
from letir.testing.samples import SAMPLES
from letir.testing.samples.sample import applied_program
from tests.each_sample import in_one_test
from tests.onnx.running import (
    REFUSED,
    UNDETERMINED,
    assert_agrees,
    exported,
    gradient_of,
    kinds_of,
    results_of,
)

# each of a family of rules; the slow test has all operations and samples
QUICK = (
    *("add", "floor_divide", "power", "maximum", "copysign", "expm1", "cbrt", "arctan2", "cast"),
    *("sum", "max", "argmax", "cumsum", "cumprod", "sort", "median", "var"),
    *("index", "index_set", "assemble", "take_along_axis", "reshape", "split", "roll", "tril"),
    *("matmul", "einsum", "tensordot", "softmax", "layer_norm", "conv", "max_pool", "pad"),
    *("cond", "switch", "fori_loop", "while_loop", "scan", "interp"),
    *("fftn", "ifftn", "rfftn", "irfftn", "complex_of"),
)


def check_sample(op, sample) -> None:
    """The operation and its gradient, exported and run."""
    program, args = applied_program(op, sample)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert_agrees(exported(program), program, args)
        gradient = gradient_of(program, args) if op.is_differentiable else None
        if gradient is not None:
            assert_agrees(exported(gradient), gradient, args)


def has_a_way(op) -> bool:
    """Whether there is a way to export an operation, or a reason why there is none."""
    name = op.name
    known = rule_for(name) or program_for(name) or refusal_of(name)
    in_place = op.bodies is not None and op.bodies.in_place is not None
    stated = type(op.onnx) is str or is_final(op.onnx)
    return bool(known or stated or op.decompose or in_place or op.role == "sized")


def test_every_operation_has_a_form_or_a_reason():
    own = [op for op in PRIMITIVES.values() if not op.is_user_defined]

    assert [] == [op for op in own if not has_a_way(op)]


def test_rules_belong_to_operations():
    assert registered_names() | names_with_conditions() <= PRIMITIVES.keys()


def test_most_operations_with_a_derivative_export():
    """The others are refused at their first sample, or have no determined numbers."""
    names = [
        op.name for op in PRIMITIVES.values() if op.is_differentiable and not op.is_user_defined
    ]
    signs = {name for name, reason in UNDETERMINED.items() if "LAPACK" in reason}

    for name in REFUSED:
        with pytest.raises(lt.ExportError, match="ONNX"):
            exported(applied_program(PRIMITIVES[name], SAMPLES[name][0])[0])
    assert REFUSED.keys() | signs <= set(names)
    assert len(REFUSED) + len(signs) <= 0.056 * len(names)


# reasons for which single samples of an operation have no form
_REASONS = (
    *("complex numbers", "undefined cotangent", "the type of", "NumPy's", "keyed random numbers"),
    *("several nan", "ScatterND", "Python's round", "tens", "that Python raises"),
    "incomplete beta function",
)
_OTHER_NUMBERS = {  # operation -> samples whose numbers or derivatives are not determined
    "unique": {6: "in an order of NumPy's choice"},
    "lstsq": {4: "a derivative where singular values are 0"},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [n for n in PRIMITIVES if SAMPLES.get(n) and n not in UNDETERMINED]
)
def test_all_operations_and_gradients_give_their_numbers_elsewhere(name):
    """At all samples; only the refused operations, and single samples, have no form."""
    op = PRIMITIVES[name]
    for number, sample in enumerate(SAMPLES[name]):
        if number in _OTHER_NUMBERS.get(name, ()):
            continue
        try:
            check_sample(op, sample)
        except lt.ExportError as error:
            is_known = name in REFUSED or any(reason in str(error) for reason in _REASONS)
            assert is_known or not op.is_differentiable, number


@in_one_test
@pytest.mark.parametrize("name", QUICK)
def test_an_operation_and_its_gradient_give_their_numbers_elsewhere(name):
    for sample in SAMPLES[name][:2]:
        check_sample(PRIMITIVES[name], sample)


# ---- operations of users ----

X = np.linspace(-1.0, 1.5, 6)


def test_an_override_writes_the_nodes_of_an_operation():
    def rule(graph, bind):
        return graph("Elu", graph.operand(bind.args[0]), alpha=2.0)

    model = exported(np.expm1, args=(X,), overrides={"expm1": rule})

    assert ["Elu"] == kinds_of(model)
    np.testing.assert_allclose(results_of(model, [X])[0], np.where(X < 0, 2 * np.expm1(X), X))


def test_an_opaque_operation_is_a_node_of_a_domain_on_request():
    def interpolated(x):
        return lt.opaque(np.flip, lambda x: x, name="tests.flipped")(x) * 2

    with pytest.raises(lt.ExportError, match=r"tests\.flipped"):
        exported(interpolated, args=(X,))
    model = exported(interpolated, args=(X,), custom_domain="mine")

    assert ["flipped", "Mul"] == kinds_of(model)
    assert ["", "mine"] == sorted(opset.domain for opset in model.opset_import)


ATTRIBUTES = [  # (of an operation, of its node)
    (0.5, 0.5),
    (3, 3),
    (True, 1),
    ("fast", b"fast"),
    ((0, 1), [0, 1]),
    ((1, 2.5), [1.0, 2.5]),
    (("a", "b"), [b"a", b"b"]),
    (np.dtype(np.float32), onnx.TensorProto.FLOAT),
    *[(None, None), ((), None), ("", None)],
]


@pytest.mark.parametrize(("value", "expected"), ATTRIBUTES)
def test_a_node_of_a_domain_has_the_attributes_of_the_operation(value, expected):
    op = lt.primitive("tests.described", lambda xp, x, *, k: x, lambda x, *, k: x)
    model = exported(lambda x: op(x, k=value), args=(X,), custom_domain="mine")

    found = {a.name: onnx.helper.get_attribute_value(a) for a in model.graph.node[0].attribute}
    assert found == ({} if expected is None else {"k": expected})


def test_an_attribute_without_a_form_in_onnx_is_refused():
    op = lt.primitive("tests.nested", lambda xp, x, *, rows: x, lambda x, *, rows: x)

    with pytest.raises(lt.ExportError, match=r"the attribute rows=\(\(1, 2\), \(3,\)\)"):
        exported(lambda x: op(x, rows=((1, 2), (3,))), args=(X,), custom_domain="mine")


def test_the_choice_of_signs_of_eigenvectors_is_warned_of():
    with pytest.warns(UserWarning, match="signs of the vectors"):
        exported(lambda x: np.linalg.eigh(x)[1], args=(np.eye(3) + 0.1,))


def test_singular_values_have_no_signs_to_warn_of():
    exported(lambda x: np.linalg.svd(x, compute_uv=False), args=(np.eye(3) + 0.1,))


def test_a_power_of_python_integers_may_be_a_fraction():
    program = lt.trace(lambda n: 2**n, -1)

    assert_agrees(exported(program), program, [-2])


@pytest.mark.parametrize(
    ("name", "number"), [("eigh", 4), ("cofactors", 4), ("det", 6), ("conv", 3)]
)
def test_operations_on_arrays_without_elements(name, number):
    sample = SAMPLES[name][number]
    assert 0 in sample.args[0].shape

    check_sample(PRIMITIVES[name], sample)


# ---- random numbers ----


def test_the_numbers_of_a_key_in_the_program_are_constants_with_a_warning():
    def f(x):
        return lt.nn.dropout(x, lt.random.key(3), rate=0.5) + lt.fori_loop(
            0, 3, lambda i, y: lt.nn.dropout(y, lt.random.key(4)), x
        )

    program = lt.trace(f, lt.ShapeDtype((40,), float))
    with pytest.warns(UserWarning, match=r"dropout: its random numbers become constants") as found:
        model = exported(program)

    assert {__file__} == {warning.filename for warning in found}
    assert_agrees(model, program, [np.linspace(-1, 1, 40)])


def test_a_key_that_is_an_input_is_refused_with_the_remedy():
    def f(x, key):
        return lt.nn.dropout(x, key, rate=0.5)

    with pytest.raises(lt.ExportError, match="make the key in the program") as caught:
        exported(f, args=(X, lt.random.key(0)))
    assert "test_node_emission.py:" in str(caught.value)


def test_random_numbers_of_a_symbolic_size_are_refused_with_the_remedy():
    def f(x):
        return x + lt.random.normal(lt.random.key(3), x.shape)

    with pytest.raises(lt.ExportError, match="give the symbolic sizes numbers"):
        exported(f, args=(lt.ShapeDtype(("n",), float),))
