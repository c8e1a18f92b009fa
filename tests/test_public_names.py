"""The public names: one table, its stub for editors, and completion after ``letir.``."""

import inspect
import runpy
import subprocess
import sys
from pathlib import Path

import jedi
import numpy as np
import pytest

import letir
from letir import extend
from tests.each_sample import each_of, in_one_test

STUB = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "make_stub.py"))


def test_the_stubs_are_up_to_date():
    assert STUB["stub"]() == STUB["PAGE"].read_text(encoding="utf-8")
    assert STUB["nn_stub"]() == STUB["NN_PAGE"].read_text(encoding="utf-8")


def test_inspect_sees_how_users_call_an_operation():
    assert str(inspect.signature(letir.nn.linear)) == "(x, weight, bias=None)"
    assert str(inspect.signature(letir.nn.softmax)) == "(x, *, axis=-1)"
    assert "impl" in inspect.signature(letir.Primitive).parameters


def test_a_program_names_its_parameters_as_the_operation_does():
    program = letir.trace(letir.nn.linear, np.ones(3), np.ones((2, 3)))
    assert [param.name for param in program.params] == ["x", "weight"]


def test_the_types_are_installed_with_the_package():
    assert Path(letir.__file__).with_name("py.typed").exists()


@each_of(dir(letir))
def test_every_public_name_is_found_where_the_table_says(name):
    assert getattr(letir, name) is not None


def test_names_that_shadow_builtins_are_public_but_not_imported_by_a_star():
    shadowing = {"compile", "map", "reduce", "slice"}

    assert shadowing <= set(dir(letir))
    assert shadowing.isdisjoint(letir.__all__)


@in_one_test
@pytest.mark.parametrize("name", extend.__all__)
def test_names_for_extensions_are_in_extend(name):
    assert getattr(extend, name) is not None


@pytest.mark.parametrize("name", ["PRIMITIVES", "local_of", "never", "set_local", "todo"])
def test_names_for_extensions_only_are_not_at_the_top(name):
    assert not hasattr(letir, name)


@in_one_test
@pytest.mark.parametrize("name", [n for n in dir(letir) if not n.startswith("_")])
def test_an_editor_completes_every_public_name(name):
    found = jedi.Script(f"import letir as lt\nlt.{name}").complete(2, len(name) + 3)

    assert name in [completion.name for completion in found]


@pytest.mark.parametrize("name", ["extend", "nn", "passes", "random", "testing", "viz"])
def test_completion_in_a_session_shows_the_public_names_of_a_namespace(name):
    namespace = getattr(letir, name)

    assert sorted(namespace.__all__) == dir(namespace)


@pytest.mark.parametrize(("name", "parameter"), [("grad", "argnums"), ("map", "f"), ("jit", "f")])
def test_an_editor_shows_signatures(name, parameter):
    found = jedi.Script(f"import letir as lt\nlt.{name}(").get_signatures(2, len(name) + 4)

    assert any(parameter in [p.name for p in signature.params] for signature in found)


def test_a_star_import_has_every_name_without_shadowing_builtins():
    code = "from letir import *; print(map is __builtins__.map, callable(trace), extend.todo)"

    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("True True")


def _square_sum(x):
    return (x**2).sum()


COMPLETED = {  # an object -> the attributes without underscores that completion lists
    "jit": (lambda: letir.jit(_square_sum), "clear counters debug_state"),
    "jitted grad": (lambda: letir.jit(letir.grad(_square_sum)), "clear counters debug_state"),
    "method": (lambda: letir.jit(_Doubler().call), "clear counters debug_state"),
    "grad": (lambda: letir.grad(_square_sum), ""),
    "vmap": (lambda: letir.vmap(_square_sum), ""),
    "compiled": (
        lambda: letir.compile(letir.trace(_square_sum, np.ones(2))),
        "kernels memory optimized plan profile program",
    ),
    "plan": (
        lambda: letir.compile(letir.trace(_square_sum, np.ones(2))).plan,
        "binds kernels memory params profile ret run",
    ),
    "Lambda": (
        lambda: letir.trace(_square_sum, np.ones(2)),
        "binds body constants in_tree listing memo out_tree params replace ret with_binds",
    ),
    "vjp": (lambda: letir.vjp(_square_sum, np.ones(2))[1], "captured program"),
    "custom_vjp": (lambda: letir.custom_vjp(_square_sum), "defvjp"),
    "custom_jvp": (lambda: letir.custom_jvp(_square_sum), "defjvp defjvps"),
}


class _Doubler:
    def call(self, x):
        return x * 2


@each_of(COMPLETED)
def test_completion_of_an_object_lists_what_users_need_and_nothing_else(name):
    make, names = COMPLETED[name]
    found = make()

    assert " ".join(n for n in dir(found) if not n.startswith("_")) == names
    assert all(hasattr(found, n) for n in names.split())
