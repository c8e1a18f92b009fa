"""``letir.debug.print``, an effect in program order [C5]."""

import numpy as np
import pytest

import letir as lt
from letir.errors import TraceError
from letir.testing import assert_same

X = np.array([1.0, 3.0])


def squares(x):
    y = x * x
    lt.debug.print("y = {} and {n:.1f}", y, n=y.sum())
    return y.sum()


def printed(capsys) -> list[str]:
    """The lines printed since the last call."""
    return capsys.readouterr().out.splitlines()


def test_a_traced_function_prints_in_each_run_but_not_while_traced(capsys):
    program = lt.trace(squares, X)
    assert [] == printed(capsys)

    program(X)
    program(2 * X)

    assert ["y = [1. 9.] and 10.0", "y = [ 4. 36.] and 40.0"] == printed(capsys)


def test_print_acts_at_once_outside_of_traces_and_in_pauses(capsys):
    def paused(x):
        with lt.pause_tracing():
            lt.debug.print("{}", x)
        return x

    squares(X)
    squares(lt.Variable(X, requires_grad=True))
    lt.trace(paused, X)

    assert [*["y = [1. 9.] and 10.0"] * 2, "[1. 3.]"] == printed(capsys)


def test_derivative_programs_print_once(capsys):
    for transform in (lt.grad(squares), lt.value_and_grad(squares), lt.hessian(squares)):
        transform(X)
        assert ["y = [1. 9.] and 10.0"] == printed(capsys)
    lt.jvp(squares, (X,), (X,))
    assert ["y = [1. 9.] and 10.0"] == printed(capsys)
    lt.vjp(squares, X)[1](1.0)
    assert ["y = [1. 9.] and 10.0"] == printed(capsys)
    lt.grad(lt.checkpoint(squares))(X)
    assert ["y = [1. 9.] and 10.0"] == printed(capsys)


def test_vmap_prints_the_stacked_values_once(capsys):
    lt.vmap(squares)(np.stack([X, X]))

    assert ["y = [[1. 9.]", " [1. 9.]] and [10.0 10.0]"] == printed(capsys)


def test_a_format_spec_applies_to_the_elements_of_an_array(capsys):
    lt.debug.print("{:.1f} {:5}", X, 2)
    source = lt.to_source(lt.trace(lambda x: lt.debug.print("{:.1f}", x) or x, X), name="f")
    scope: dict = {}
    exec(source, scope)
    scope["f"](X)

    assert ["[1.0 3.0]     2", "[1.0 3.0]"] == printed(capsys)


def test_prints_and_guards_keep_their_order(capsys):
    """[C5]"""

    def f(x):
        lt.debug.print("first")
        if x > 0:
            lt.debug.print("positive {}", x)
        return x

    program = lt.trace(f, 2.0)
    assert ["print", "greater", "guard", "print"] == [bind.op.name for bind in program.binds]

    with pytest.raises(lt.GuardError):
        program(-1.0)
    assert ["first"] == printed(capsys)


def test_an_inlined_program_prints_when_it_runs(capsys):
    program = lt.trace(squares, X)

    outer = lt.trace(lambda x: program(x) + 1, X)
    assert [] == printed(capsys)
    outer(X)

    assert ["y = [1. 9.] and 10.0"] == printed(capsys)


def test_a_print_survives_parsing_and_source(capsys, tmp_path):
    program = lt.trace(squares, X)
    path = tmp_path / "printed.py"
    path.write_text(lt.to_source(program, name="f"))
    scope: dict = {}
    exec(path.read_text(), scope)

    assert program == lt.parse(lt.dumps(program))
    assert_same(program(X), scope["f"](X))
    assert ["y = [1. 9.] and 10.0"] * 2 == printed(capsys)


@pytest.mark.parametrize("text", ["{} {} {}", "{a}", "{", "{n", "{0} {}"])
def test_a_format_that_does_not_fit_is_an_error_at_once(text):
    with pytest.raises(TraceError, match="write a pair of braces"):
        lt.debug.print(text, 1.0, n=2.0)
