"""Laws on generated scripts with if, while and for: they mean the same as in Python [G3]."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.scripting.units import CompilationUnit, script

X, Y = np.array([0.5, -1.25, 2.0]), np.array([1.5, 0.75, -0.5])
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
NAMES = ("x", "y", "z", "s", "k")
SCALARS = ("s", "k")
VALUES = ("{a} * 0.5 + {b}", "np.tanh({a}) - {b}", "np.where({a} > 0, {b}, 2 * x)", "{a}")
NUMBERS = ("{a}.sum()", "{s} + 1", "{s} * 0.5", "x[1] * {s}", "{a}.max() if {t} else {s}")
TESTS = (
    *("{s} > 0.5", "{a}.sum() > {s}", "{s} < 2 and {a}[0] > 0", "{s} < 1 or not {a}[1] > 0"),
    *("0 < {s}", "{s} != {s} or {a}.any()", "(x > 0).all()"),
)


class Writer:
    """Writes statements; ``known``: the names that have a value on every path."""

    def __init__(self, draw):
        self.draw, self.loops = draw, 0

    def pick(self, options):
        return self.draw(st.sampled_from(list(options)))

    def filled(self, template: str, known: set[str]) -> str:
        vectors, scalars = sorted(known - set(SCALARS)), sorted(known & set(SCALARS))
        test = f"{self.pick(scalars)} > {self.pick(scalars)}"
        a, b, s = self.pick(vectors), self.pick(vectors), self.pick(scalars)
        return template.format(a=a, b=b, s=s, t=test)

    def block(self, known: set[str], depth: int) -> list[str]:
        lines = []
        for _ in range(self.draw(st.integers(1, 3))):
            lines += self.statement(known, depth)
        return lines

    def statement(self, known: set[str], depth: int) -> list[str]:
        kind = self.pick(["assign", "assign", *["if", "for", "while"] * (depth < 2)])
        if kind == "assign":
            name = self.pick(NAMES)
            template = self.pick(NUMBERS if name in SCALARS else VALUES)
            line = f"{name} = {self.filled(template, known)}"
            known.add(name)
            return [line]
        if kind == "if":
            ends = [set(known), set(known)]
            test = self.filled(self.pick(TESTS), known)
            first, second = (self.block(end, depth + 1) for end in ends)
            known |= ends[0] & ends[1]
            return [f"if {test}:", *indented(first), "else:", *indented(second)]
        self.loops += 1
        index, inner = f"i{self.loops}", set(known)
        if kind == "for":
            head = self.pick(["range(3)", "range(len(x))", "range(1, 6, 2)", "range(4, 0, -3)"])
            line = f"z = x * {index} + {self.filled('{a}', known)}"
            inner.add("z")
            return [f"for {index} in {head}:", *indented([line, *self.block(inner, depth + 1)])]
        body = [f"{index} = {index} + 1", *self.block(inner, depth + 1)]
        test = f"{index} < 3 and ({self.filled(self.pick(TESTS), known)})"
        return [f"{index} = 0", f"while {test}:", *indented(body)]


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


@st.composite
def texts(draw) -> str:
    """A function of x, y and s with control flow."""
    writer, known = Writer(draw), {"x", "y", "s"}
    lines = writer.block(known, 0) + writer.block(known, 0)
    results = draw(st.lists(st.sampled_from(sorted(known - {"x"})), min_size=2, unique=True))
    return "\n".join(["def f(x, y, s):", *indented([*lines, f"return {', '.join(results)}"])])


def defined(text: str):
    """The Python function ``f`` of a text."""
    names: dict = {"np": np}
    exec(text, names)
    return names["f"]


@QUICK
@given(texts(), st.sampled_from([0.25, -1.5, 1.0]))
def test_a_script_means_what_python_means(text, number):
    """[G3]"""
    made, s = script(text), np.float64(number)
    with np.errstate(all="ignore"):
        expected = defined(text)(X, Y, s)
        found = made(X, Y, s)

    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    again = CompilationUnit(made.lifted)
    assert again.f.forward == made.forward
    assert script(made.code).forward == made.forward
    typed = made.at(X, Y, s).forward
    assert lt.parse(lt.dumps(typed)) == typed


@QUICK
@given(texts(), st.sampled_from([0.25, -1.5, 1.0]))
def test_gradients_follow_the_branches_that_python_takes(text, number):
    """[G3]"""
    s = np.float64(number)

    def total(f):
        return lambda x, y, s: sum([part.sum() for part in f(x, y, s)])

    with np.errstate(all="ignore"):
        expected = lt.grad(total(defined(text)), (0, 1, 2))(X, Y, s)
        found = lt.grad(total(script(text)), (0, 1, 2))(X, Y, s)

    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
