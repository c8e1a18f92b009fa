"""Programs put together by hand that are not programs: ``check`` and the text say why."""

import numpy as np
import pytest

import letir as lt
import letir.ops
from letir import Bind, Const, Lambda, Local, Ret, Source
from letir.ast.attrs import Attrs
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import ArrayType
from tests.each_sample import in_one_test

KIND = ArrayType(float, (2,))
X, Y, Z = Local(KIND, "x"), Local(KIND, "y"), Local(KIND, "z")
EXP, ADD, CHECKPOINT = (PRIMITIVES[name] for name in ("exp", "add", "checkpoint"))


def of(*binds, params=(X,), ret=None):
    """A program of these binds."""
    return Lambda(params, binds, Ret((Y,)) if ret is None else ret)


def nested(body):
    return Bind((Y,), CHECKPOINT, (X,), CHECKPOINT.complete({"body": body, "saved": 0}))


WRONG = [
    (of("exp"), "bind 0 is 'exp' of class str, expected Bind"),
    (of(None), "bind 0 is None of class NoneType"),
    (of(((Y,), EXP, (X,))), "bind 0 is an object of class tuple"),
    (of(Bind((Y,), "exp", (X,))), "bind 0: the operation is 'exp' of class str"),
    (of(Bind((Y,), np.exp, (X,))), "the operation is an object of class ufunc"),
    (of(Bind((Y,), ADD, (X, np.ones(2)))), "operand 1 is an object of class ndarray"),
    (of(Bind((Y,), EXP, X)), "the operands are an object of class Local, expected a tuple"),
    (of(Bind(Y, EXP, (X,))), "the binders are an object of class Local"),
    (of(Bind(("y",), EXP, (X,))), "a binder is 'y' of class str, expected Local"),
    (of(Bind((Const(1.0),), EXP, (X,))), "a binder is an object of class Const"),
    (of(Bind((Local("float64"),), EXP, (X,))), "the type of a binder is 'float64' of class str"),
    (of(Bind((Y,), EXP, (X,), None)), "the attributes are None of class NoneType"),
    (of(params=("x",)), "parameter 0 is 'x' of class str"),
    (of(params=(Local("float64"),)), "the type of parameter 0 is 'float64'"),
    (of(ret=[X]), "the end of the program is an object of class list, expected Ret"),
    (of(ret=Ret(X)), "the results are an object of class Local"),
    (of(nested(Lambda((Z,), (), Ret((Y,))))), "result 0 is a local y of type float64.2. that is"),
    (of(nested(Lambda((Z,), ("exp",), Ret((Z,))))), "bind 0 is 'exp'"),
]


@in_one_test
@pytest.mark.parametrize(("fn", "message"), WRONG)
def test_check_names_the_part_that_is_of_the_wrong_class(fn, message):
    with pytest.raises((lt.DTypeError, lt.ScopeError), match=message):
        lt.check(fn)


@in_one_test
@pytest.mark.parametrize("text_of", [lt.dumps, str])
@pytest.mark.parametrize(
    ("fn", "message"),
    [
        *[case for case in WRONG if "type of" not in case[1] and "attributes" not in case[1]],
        (of(Bind((Y,), EXP, (Z,))), "operand 0 is a local z of type float64.2. that is not bound"),
        (of(ret=Ret((1.0,))), "result 0 is 1.0 of class float, expected a Local, or a Const"),
        (of(Bind((Local(KIND, 3),), EXP, (X,)), ret=Ret(())), "the name of a binder is 3"),
    ],
)
def test_the_text_of_a_malformed_program_is_an_error_that_says_why(fn, message, text_of):
    with pytest.raises((lt.DTypeError, lt.ScopeError), match=message):
        text_of(fn)


def test_an_error_has_the_users_line():
    bind = Bind((Y,), EXP, (X, [1.0]), Attrs(), Source("model.py", 7))

    with pytest.raises(lt.DTypeError, match=r"operand 1 .*\n  in bind 0, exp\n  at model.py:7"):
        lt.dumps(of(bind))


def test_an_array_of_objects_is_not_a_constant():
    constant = Bind((Y,), PRIMITIVES["constant"], (), Attrs(value=np.array([object()])))

    for read in (lt.check, lt.dumps, str):
        with pytest.raises(lt.DTypeError, match="a part of the program cannot be read"):
            read(of(constant))


def test_a_builder_says_which_operation_or_operand_is_of_the_wrong_class():
    builder = lt.LetBuilder()

    with pytest.raises(lt.DTypeError, match="the operation is 'exp' of class str"):
        builder.apply("exp", [np.ones(2)])
    with pytest.raises(lt.DTypeError, match="exp: operand 0 is an object of class ndarray"):
        builder.emit(EXP, [np.ones(2)])
