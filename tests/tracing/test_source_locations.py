"""Every bind has the user's source line, and its result the name of the assigned variable."""

import dis
import functools
import inspect
import linecache
import random

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.tracing.source_locations import _assigned_names, user_place
from tests.each_sample import in_one_test

X = np.array([1.0, 2.0, 3.0])


def lines_of(program, *args) -> list[str]:
    """The source text of the line of each bind of a program."""
    sources = [bind.source for bind in lt.trace(program, *args).binds]
    assert {__file__} == {source.file for source in sources}
    return [linecache.getline(source.file, source.line).strip() for source in sources]


def names_of(program, *args) -> list[str | None]:
    """The name of each result."""
    return [b.name for bind in lt.trace(program, *args).binds for b in bind.binders]


def test_each_bind_has_its_own_line():
    def program(x):
        y = np.sin(x)
        z = y * 2.0
        return z.sum()

    assert ["y = np.sin(x)", "z = y * 2.0", "return z.sum()"] == lines_of(program, X)


def test_binds_made_in_a_helper_have_the_line_in_the_helper():
    def norm(x):
        return np.sqrt((x * x).sum())

    def program(x):
        return x / norm(x)

    helper = "return np.sqrt((x * x).sum())"
    assert [helper, helper, helper, "return x / norm(x)"] == lines_of(program, X)


def test_a_call_over_several_lines_has_the_line_where_it_begins():
    def program(x):
        return np.where(
            x > 1.5,
            x,
            0.0,
        )

    assert "x > 1.5," == lines_of(program, X)[0]
    assert "return np.where(" == lines_of(program, X)[1]


PROGRAMS = {
    "a ufunc": lambda x: np.sin(x),  # noqa: PLW0108
    "a function": lambda x: np.concatenate([x, x]),
    "a function in Python": lambda x: np.mean(x, axis=0),
    "an operator": lambda x: x + 1.0,
    "a reflected operator": lambda x: X - x,
    "a method": lambda x: x.sum(),
    "an index": lambda x: x[0],
    "a property": lambda x: x.T,
    "an iteration": lambda x: [row for row in x],  # noqa: C416
    "an operation of letir": lambda x: lt.stop_gradient(x),  # noqa: PLW0108
    "a functional update": lambda x: x.at[0].set(1.0),
    "an array of letir.numpy": lambda x: lnp.zeros(3),
    "a list of letir.numpy": lambda x: lnp.sum([x, x]),
    "a gradient": lambda x: lt.grad(lambda y: (y * y).sum())(x) + 0,
    "functools": lambda x: functools.reduce(np.add, [x, x]),
    "a generator": lambda x: sum(row for row in x),
}


@in_one_test
@pytest.mark.parametrize("name", PROGRAMS)
def test_frames_of_libraries_are_skipped(name):
    program = PROGRAMS[name]

    for line in lines_of(program, X):
        assert line.startswith(f'"{name}": ')


def test_constants_have_the_line_of_their_use():
    assert ["return x + table + X  # here"] * 3 == lines_of(used_table, X)[1:]


def test_arrays_that_the_function_makes_have_the_line_that_makes_them():
    assert "table = np.arange(3.0)" == lines_of(used_table, X)[0]


def used_table(x):
    table = np.arange(3.0)
    return x + table + X  # here


def test_results_have_the_names_of_the_variables_they_are_assigned_to():
    def program(x):
        sine = np.sin(x)
        total = sine.sum()
        scaled = 2.0 * (sine + 1.0)
        scaled /= total
        return scaled

    assert ["sine", "total", None, "scaled", "scaled"] == names_of(program, X)


def test_results_assigned_to_several_variables_or_none_have_no_name():
    def program(x):
        a, b, c = np.split(x, 3)
        return np.sin(a), b, c

    assert [None, None, None, None] == names_of(program, X)


def test_rows_in_a_loop_have_the_name_of_the_loop_variable():
    def program(x):
        for row in x:
            assert () == row.shape
        return row

    assert ["row"] * 3 == names_of(program, X)


def test_variables_of_closures_and_modules_give_names():
    def program(x):
        inner = np.sin(x)

        def use():
            nonlocal inner
            inner = inner * 2.0
            return inner

        return use()

    assert ["inner", "inner"] == names_of(program, X)


def test_parameters_have_the_names_of_the_functions_parameters():
    f = lt.trace(lambda model, *, rate: model["w"][0] * rate, {"w": [X, X], "b": 1.0}, rate=0.1)

    assert ["model.b", "model.w.0", "model.w.1", "rate"] == [p.name for p in f.params]


def test_parameters_without_a_name_are_numbered():
    f = lt.trace(lambda *rest: rest[0] + rest[1], X, X)

    assert ["arg0", "arg1"] == [param.name for param in f.params]


def test_a_key_that_is_not_an_identifier_is_turned_into_one():
    f = lt.trace(lambda model: model["layer 1/w"], {"layer 1/w": X})

    assert ["model.layer_1_w"] == [param.name for param in f.params]


def test_code_from_a_string_has_its_own_place():
    scope = {"np": np}
    exec(compile("def program(x):\n    return np.sin(x)\n", "<cell 3>", "exec"), scope)

    (bind,) = lt.trace(scope["program"], X).binds

    assert "<cell 3>:2" == str(bind.source)


def test_two_functions_at_the_address_of_one_are_not_mixed_up():
    """Places are cached by the address of a code object, which the cache keeps alive."""
    seen = []
    for n in range(50):
        scope = {"np": np}
        text = "\n" * n + "def program(x):\n    return np.sin(x)\n"
        exec(compile(text, "<cell>", "exec"), scope)
        seen.append(lt.trace(scope["program"], X).binds[0].source.line)
        del scope

    assert [n + 2 for n in range(50)] == seen


def test_the_place_of_a_call_is_the_innermost_frame_of_the_user():
    source, name = here = user_place(1)

    assert __file__ == source.file
    assert inspect.currentframe().f_code.co_firstlineno + 1 == source.line
    assert (None, 2) == (name, len(here))


def test_assigned_names_are_those_of_the_disassembly():
    storing = "STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"
    codes = [compile(inspect.getsource(module), "<code>", "exec") for module in (inspect, random)]
    for code in codes:  # nested functions are appended
        codes += [constant for constant in code.co_consts if inspect.iscode(constant)]
        read = list(dis.get_instructions(code))
        following = [x.argval if x.opname.startswith(storing) else None for x in read[1:]]
        names = [name[0] if isinstance(name, tuple) else name for name in following]
        expected = [x.offset for x in read], [*names, None], [tuple(x.positions) for x in read]

        assert expected == _assigned_names(code)
