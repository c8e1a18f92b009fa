"""Every operation exports, and gives its numbers elsewhere, or says why there is no form of it."""

import warnings

import numpy as np
import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES, is_final
from letir.onnx.exporting.node_graph import (
    program_for,
    refusal_of,
    registered_names,
    rule_for,
)
from letir.testing.samples import SAMPLES
from letir.testing.samples.sample import applied
from tests.onnx.running import (
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
    program, args = applied(op, sample)
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
    own = [op for op in PRIMITIVES.values() if not op.is_users]

    assert [] == [op for op in own if not has_a_way(op)]


def test_rules_belong_to_operations():
    assert registered_names() <= PRIMITIVES.keys()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [n for n in PRIMITIVES if SAMPLES.get(n) and n not in UNDETERMINED]
)
def test_all_operations_and_gradients_give_their_numbers_elsewhere(name):
    """At the first samples; operations without a form say so."""
    for sample in SAMPLES[name][:3]:
        try:
            check_sample(PRIMITIVES[name], sample)
        except lt.ExportError as error:
            assert "ONNX" in str(error)
            return


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


def test_the_choice_of_signs_of_eigenvectors_is_warned_of():
    with pytest.warns(UserWarning, match="signs of the vectors"):
        exported(lambda x: np.linalg.eigh(x)[1], args=(np.eye(3) + 0.1,))


# ---- random numbers ----


def test_the_numbers_of_a_key_in_the_program_are_constants_with_a_warning():
    def f(x):
        return lt.nn.dropout(x, lt.random.key(3), rate=0.5) + lt.fori_loop(
            0, 3, lambda i, y: lt.nn.dropout(y, lt.random.key(4)), x
        )

    program = lt.trace(f, lt.ShapeDtype((40,), float))
    with pytest.warns(UserWarning, match=r"dropout: its random numbers become constants") as found:
        model = exported(program)

    assert all("test_node_emission.py:" in str(warning.message) for warning in found)
    assert_agrees(model, program, [np.linspace(-1, 1, 40)])


def test_a_key_that_is_an_input_is_refused_with_the_remedy():
    def f(x, key):
        return lt.nn.dropout(x, key, rate=0.5)

    with pytest.raises(lt.ExportError, match="make the key in the program") as caught:
        exported(f, args=(X, lt.random.key(0)))
    assert "test_node_emission.py:" in str(caught.value)
