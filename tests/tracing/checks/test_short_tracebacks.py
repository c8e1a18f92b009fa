"""Tracebacks of errors that leave letir: the frames of the user, and no other."""

import os
import traceback
import weakref
from types import FunctionType

import numpy as np
import pytest

import letir as lt
from tests.each_sample import in_one_test

X = np.arange(3.0)


def product(x):
    return np.matmul(x, np.ones(4))


def failing(x):
    raise KeyError("mine")


def numpys(x):
    return np.linalg.cholesky(x)


@lt.custom_vjp
def squared(x):
    return x * x


squared.defvjp(lambda x: (x * x, x), lambda x, ct: (product(x),))

CALLS = {
    "trace": (lambda: lt.trace(product, X), ["product"]),
    "grad": (lambda: lt.grad(product)(X), ["product"]),
    "jit": (lambda: lt.jit(product)(X), ["product"]),
    "vmap": (lambda: lt.vmap(product)(np.ones((2, 3))), ["product"]),
    "hessian": (lambda: lt.hessian(product)(X), ["product"]),
    "jvp": (lambda: lt.jvp(product, (X,), (X,)), ["product"]),
    "vjp": (lambda: lt.vjp(product, X), ["product"]),
    "jit of grad": (lambda: lt.jit(lt.grad(product))(X), ["product"]),
    "a body": (lambda: lt.trace(lambda x: lt.map(product, x), np.ones((2, 3))), ["product"]),
    "a rule": (lambda: lt.grad(lambda x: squared(x).sum())(X), ["<lambda>", "product"]),
    "the user's own error": (lambda: lt.grad(failing)(X), ["failing"]),
    "an error of numpy": (lambda: lt.trace(numpys, -np.eye(2)), ["numpys"]),
    "a replay": (lambda: lt.trace(lambda x: x + 1, X)(np.ones(4)), []),
    "numpy at a replay": (lambda: lt.trace(numpys, np.eye(2))(-np.eye(2)), []),
    "an option": (lambda: lt.grad(lambda x: x, argnums=3)(1.0), []),
    "a text": (lambda: lt.parse("lambda %0 {"), []),
    "a function of nn": (lambda: lt.nn.relu("x"), []),
    "a key": (lambda: lt.random.normal(np.ones(3)), []),
    "Variables": (lambda: lt.Variable(X) @ lt.Variable(np.ones(4)), None),
}


def error_of(action) -> BaseException:
    """The error that an action raises, as someone who catches it sees it."""
    with pytest.raises(Exception) as caught:
        action()
    return caught.value


def functions_in(error: BaseException) -> list[str]:
    """The names of the functions in a traceback below the action."""
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    below = names[names.index("error_of") + 2 :]
    return [name for name in below if name not in ("call", "__call__")]  # where letir raises


@in_one_test
@pytest.mark.parametrize(("action", "users"), CALLS.values(), ids=list(CALLS))
def test_a_traceback_has_the_frames_of_the_user_alone(action, users):
    names = functions_in(error_of(action))

    if users is None:  # operators of Variables keep a few
        assert len(names) <= 3
    else:
        assert [n for n in names if n != "<lambda>"] == [n for n in users if n != "<lambda>"]


def test_the_variable_letir_traceback_shows_all_frames(monkeypatch):
    monkeypatch.setenv("LETIR_TRACEBACK", "full")

    assert len(functions_in(error_of(lambda: lt.grad(product)(X)))) > 8


def test_an_error_without_a_line_gets_the_line_of_the_call():
    error = error_of(lambda: lt.grad(lambda x: x, argnums=3)(1.0))

    line = error_of.__code__.co_firstlineno
    assert f"\n  at {__file__}:" in str(error) and f":{line}" not in str(error)


def test_an_error_within_a_callback_gets_the_line_of_the_callback():
    def returned(x):
        return {"a": {1, 2}, "b": x}

    error = error_of(lambda: lt.trace(returned, X))

    assert "\n  at " in str(error) and str(error).count("\n  at ") == 1


def test_an_error_at_an_instruction_without_a_line_is_that_error():
    """An interrupt may come at an instruction that Python inserts."""

    def interrupted(x):
        raise KeyboardInterrupt

    code = interrupted.__code__.replace(co_linetable=b"")
    without_lines = FunctionType(code, globals())
    for run in (lambda: lt.trace(without_lines, X), lambda: lt.jit(without_lines)(X)):
        with pytest.raises(KeyboardInterrupt) as caught:
            run()
        link = caught.tb
        while link.tb_next is not None:
            link = link.tb_next
        assert (link.tb_frame.f_code.co_name, link.tb_lineno) == ("interrupted", None)


def test_an_error_that_letir_caught_is_not_in_the_traceback():
    error = error_of(lambda: lt.trace(lambda x: np.sin(x, wrong=1), X))

    text = "".join(traceback.format_exception(error))
    assert f"letir{os.sep}tracing" not in text and "During handling" not in text


def test_the_error_that_a_user_was_handling_stays_in_the_traceback():
    def action():
        try:
            raise KeyError("first")
        except KeyError:
            lt.trace(product, X)

    assert "first" in "".join(traceback.format_exception(error_of(action)))


def positive(x):
    return np.sqrt(x) if x > 0 else x


@pytest.mark.parametrize("f", [product, failing, positive])
@pytest.mark.parametrize("transform", [lt.grad, lt.jit, lt.vmap, lt.jacrev])
def test_no_array_is_alive_after_an_error_was_handled(f, transform):
    def attempt() -> tuple:
        x = np.ones((4, 2))
        try:
            transform(f)(x)
        except Exception as error:
            return weakref.ref(x), error.with_traceback(None)
        raise AssertionError("it does not fail")

    array, error = attempt()

    assert array() is None, error
