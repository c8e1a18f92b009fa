"""Laws on generated scripts: they mean the same as in Python, and capture what they read."""

import re

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.scripting.units import CompilationUnit, script

X, Y = np.array([[0.5, -1.25, 2.0]]), np.array([[1.5], [0.75]])
QUICK = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
NAMES = ("x", "y", "z", "w")


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions composed of smaller expressions."""
    pairs = st.tuples(inner, st.sampled_from("+-*"), inner)
    return st.one_of(
        pairs.map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda e: f"np.tanh({e})"),
        inner.map(lambda e: f"np.sum(-{e})"),
        inner.map(lambda e: f"np.where({e} > 0, y, 2 * x)"),
        inner.map(lambda e: f"{e} ** 2 / (1 + np.abs(y))"),
        inner.map(lambda e: f"np.broadcast_to({e}, (2, 2, 3))[1]"),
    )


def expressions(names) -> st.SearchStrategy[str]:
    """Expressions of these names and of numbers."""
    leaves = st.sampled_from([*names, *names, "0.5", "1.5"])
    return st.recursive(leaves, larger, max_leaves=5)


@st.composite
def bodies(draw, further: str = "") -> tuple[list[str], str]:
    """(statements, result) of a function of x, y and one; names may be bound again.

    ``further`` ends every statement.
    """
    known, lines = ["x", "y"], []
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=4)):
        lines.append(f"{name} = {draw(expressions(known))}{further}")
        known += [name] * (name not in known)
    return lines, draw(expressions(known)) + " + one"


def defined(text: str):
    """The Python function ``f`` of a text."""
    names: dict = {"np": np}
    exec(text, names)
    return names["f"]


@QUICK
@given(bodies())
def test_a_script_means_what_python_means(body):
    lines, result = body
    text = "def f(x, y, one):\n"
    text += "".join(f"    {line}\n" for line in [*lines, f"return {result}"])
    made, function = script(text), defined(text)

    assert CompilationUnit(made.lifted).f.forward == made.forward
    assert script(made.code).forward == made.forward
    np.testing.assert_array_equal(made(X, Y, X), function(X, Y, X))
    found, expected = (
        lt.grad(lambda x, y, f=f: f(x, y, X).sum(), (0, 1))(X, Y) for f in (made, function)
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@QUICK
@given(bodies(" + one"), st.data())
def test_the_context_follows_the_text_of_the_backward(body, data):
    """[G1]"""
    lines, _ = body
    known = ["x", "y", *(line.split(" = ")[0] for line in lines)]
    inner = data.draw(expressions([*known, "g"]))
    text = "def f(x, y, one):\n" + "".join(f"    {line}\n" for line in lines)
    text += f"    def back(g):\n        return {inner}, g, g\n    return x * y, back\n"
    made = script(text)
    context = re.search(r"\n  (.*) = context\n", made.lifted)
    found = re.findall(r"\w+", context[1]) if context else []
    used = re.findall(r"\b[xyzw]\b", inner)

    assert [re.sub(r"_\d+$", "", name) for name in found] == list(dict.fromkeys(used))
    again = CompilationUnit(made.lifted)
    assert again.f.forward == made.forward
    assert again.back.forward == made.backward
    pair = script(made.lifted)
    assert pair.forward == made.forward
    assert pair.backward == made.backward
    assert len(made.forward(X, Y, X)[1]) == len(found)
