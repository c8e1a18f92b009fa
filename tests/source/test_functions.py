"""``to_source``: the source computes the same bits without letir."""

import numpy as np

import letir as lt
from letir.ast.types import Undef
from letir.eval.evaluator import run_flat
from letir.testing import applied_program, assert_same
from letir.testing.gradient_checks import is_inexact
from tests.each_sample import each_sample


def loaded(source: str, *names: str):
    """The functions of a source."""
    namespace: dict = {}
    exec(compile(source, "<source>", "exec"), namespace)
    return [namespace[name] for name in names] if len(names) > 1 else namespace[names[0]]


def without_undef(results):
    """``Undef`` replaced by None, as in sources."""
    return tuple(None if r is Undef else r for r in results)


def is_written(op, sample) -> bool:
    """Whether a sample is not exempt from the law."""
    return "source" not in sample.exempt


@each_sample(is_written, in_one_test=True, quick=2)
def test_the_source_of_an_operation_computes_the_same(op, sample):
    """With operands as parameters, and with Python numbers in the bind."""
    for constants in (False, True):
        program, args = applied_program(op, sample, constants=constants)
        expected = without_undef(run_flat(program, list(args)))

        found = loaded(lt.to_source(program), "f")(*args)

        assert_same(expected if len(expected) != 1 else expected[0], found)


@each_sample(is_written, in_one_test=True, quick=2)
def test_the_source_of_a_gradient_computes_the_same(op, sample):
    program, args = applied_program(op, sample)
    try:
        g = lt.differentiate(program)
        expected, residuals = g.forward(*args)
    except lt.MissingRule:
        return
    forward, backward = loaded(lt.to_source(g), "f_forward", "f_backward")

    found, kept = forward(*args)

    results = expected if isinstance(expected, tuple) else (expected,)
    found = found if isinstance(expected, tuple) else (found,)
    assert_same((without_undef(results), residuals), (found, kept))
    real = [results[i] for i in g.df_input_vjps if i < g.f_real_outputs]
    cts = [np.full_like(r, 0.5) if is_inexact(r) else None for r in real]
    missing = [None] * len(cts), [ct if i % 2 else None for i, ct in enumerate(cts)]
    for given in (cts, *missing):
        assert_same(g.backward(residuals, *given), backward(kept, *given))


def test_files_that_a_parsed_text_names_are_not_read(tmp_path):
    """They are of a stranger's choice; the text itself may hold the line."""
    secret = tmp_path / "secret.txt"
    secret.write_text("password\n")
    text = "lambda %0:x: float64[] {\n  %1: float64[] = sin(%0)  # FILE:1\n  return %1\n}"

    assert "secret.txt:1\n" in lt.to_source(lt.parse(text.replace("FILE", str(secret))))


def test_powers_of_python_numbers_have_brackets_only_around_a_negative_base():
    powers = lt.trace(lambda x, y: (x**y, (-4.0) ** y), 2.0, 2.0)
    source = lt.to_source(powers)

    assert "= x ** y\n" in source
    assert "= (-4.0) ** y\n" in source
    assert (9.0, 16.0) == loaded(source, "f")(3.0, 2.0)
