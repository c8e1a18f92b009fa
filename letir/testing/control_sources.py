"""``control_functions``: a Hypothesis strategy of functions with control flow, and arguments.

A function is Python source that calls ``lt.cond``, ``lt.scan`` and the like on bodies that nest and
that read values of the functions around them. The same source runs on NumPy arrays with
``plain_control`` for ``lt``, as ``function.plain``. Values are kept small.
"""

import linecache
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
from attrs import define, field, frozen
from hypothesis import strategies as st

from letir.testing.plain_control import PLAIN
from letir.tracing.control_flow import conditionals, map_reduce, scans, while_and_fori

_RECORDED = SimpleNamespace(
    cond=conditionals.cond,
    switch=conditionals.switch,
    while_loop=while_and_fori.while_loop,
    fori_loop=while_and_fori.fori_loop,
    scan=scans.scan,
    map=map_reduce.map,
    reduce=map_reduce.reduce,
    associative_scan=map_reduce.associative_scan,
    reduce_by_index=map_reduce.reduce_by_index,
    scatter=map_reduce.scatter,
)
_SCALAR, _ROW, _COLUMN, _TABLE = (), (2,), ("n",), ("n", 2)
_SMOOTH = (
    "np.tanh({a})",
    "{a} * 0.5 + {b}",
    "np.sin({a} - {b})",
    "{a} * {b}",
    "{a} / (2 + {b} ** 2)",
)
_TIES = (
    "np.maximum({a}, {b})",
    "np.minimum({a}, 0.25)",
    "np.where({a} > 0.3, {a}, {b})",
    "abs({a})",
)
_WHOLE = ("{a} + 1", "{a} * {b} % 7", "{a} // 2 - {b}", "np.maximum({a}, {b})")
_BOOLEAN = ("{a} & {b}", "~{a}", "{a} ^ {b}")
_ALONG = ("np.cumsum({a}, axis=0)", "{a}[::-1]", "np.roll({a}, 1, axis=0)", "{a}[..., ::-1]")
# expressions that turn a value of one shape into another shape
_MADE = {
    _SCALAR: ("{s}", "{t}.sum()", "{r}[0]", "{c}.sum(axis=0)"),
    _ROW: ("{s} + {r}", "{t}.sum(axis=0)", "np.stack([{s}, {s}])"),
    _COLUMN: ("{s} * {c}", "{t}.sum(axis=1)", "{t}[:, 1]"),
    _TABLE: ("{s} - {t}", "{r} * {t}", "{c}[:, None] + {t}", "np.stack([{c}, {c}], axis=1)"),
}
# in a counted loop, of a column and a scalar; ordinary arrays cannot be indexed by its number
_COUNTED = ("{t}[:, i % 2]", "{r}[i % 2]")
_BOUNDS = ("0, 3", "0, k", "k - 1, 3", "2, 1", "-1, 2", "np.int64(1), k + 1")
_OPERATORS = ("np.add", "lambda p, q: p + q + p * q", "lambda p, q: p * q")
_EXTREMA = ("np.maximum", "np.minimum", "lambda p, q: np.minimum(q, p)")
_NEUTRAL = {"np.add": "0.0", "np.maximum": "-1e6", "np.minimum": "1e6"}
_NEUTRAL |= {_OPERATORS[1]: "0.0", _OPERATORS[2]: "1.0", _EXTREMA[2]: "1e6"}
_KINDS = ("expression", "cond", "switch", "fori", "repeat", "scan", "map", "combine", "place")
_SHAPES = {"t": _TABLE, "c": _COLUMN, "r": _ROW, "s": _SCALAR}
_DTYPES = tuple(map(np.dtype, ("f8", "f8", "f4", "i8", "?")))


class _ControlFunction:
    """A function made from source text, and its version on plain arrays. Prints as its source."""

    def __init__(self, source: str, call: Callable, plain: Callable):
        self.source, self.call, self.plain = source, call, plain

    def __call__(self, *args):
        return self.call(*args)

    def __repr__(self):
        return f"\n{self.source}"


def control_functions(
    *,
    smooth: bool = False,
    named: bool = False,
    kinds: tuple[str, ...] = _KINDS,
    max_depth: int = 2,
    max_length: int = 3,
    max_steps: int = 4,
) -> st.SearchStrategy:
    """(function, arguments): NumPy code with nested control flow, and arrays for it.

    ``function.plain`` is the function on arrays, with Python's loops. ``smooth``: float64 only, and
    differentiable away from where conditions change. The leading axes of the arguments x (n, 2), c
    (n,) and j (n,) have 0 to ``max_length`` elements, and the code is the same for any number; r is
    (2,), s a 0-d array, k a 0-d integer. Record the function, as ``trace`` and ``jit`` do: bodies
    of counted loops index outer arrays by the number of the step, which ordinary arrays do not
    take. ``named``: only code that can be recorded if this number is a symbolic size.

    >>> from hypothesis import given
    >>> from letir import trace
    >>> from letir.testing import assert_close
    >>> @given(control_functions(max_steps=1))
    ... def test_loops_are_those_of_python(program):
    ...     f, args = program
    ...     assert_close(f.plain(*args), trace(f, *args)(*args))
    >>> test_loops_are_those_of_python()
    """
    style = _Style(smooth, named, tuple(kinds), max_depth)
    return _draw_function(style, max_length, max_steps)


@frozen
class _Style:
    """The options of ``control_functions``."""

    smooth: bool
    named: bool
    kinds: tuple[str, ...]
    max_depth: int


@st.composite
def _draw_function(draw, style: _Style, max_length: int, max_steps: int):
    """A function and its arguments; a composite, so that failures show the source."""
    smooth = style.smooth
    n = draw(st.integers(0, max_length))
    letters = [np.dtype(float)] * 4 if smooth else draw(st.tuples(*[st.sampled_from(_DTYPES)] * 4))
    scope = [_Variable(name, d, _SHAPES[name]) for name, d in zip(_SHAPES, letters, strict=True)]
    args = [_drawn_array(draw, value, n) for value in scope]
    args.append(np.asarray(draw(st.integers(-1, 4))))
    args.append(np.array(draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n)), int))
    writer = _Writer(draw, style)
    lines = writer.block(scope, 0, max_steps)
    results = ", ".join(value.name for value in scope[-3:])
    source = "\n".join(["def f(t, c, r, s, k, j):", *_indent_lines([*lines, f"return {results}"])])
    return _control_function(source + "\n"), args


def _drawn_array(draw, variable: "_Variable", n: int) -> np.ndarray:
    """An array of small numbers of this type."""
    shape = tuple(n if size == "n" else size for size in variable.shape)
    count = int(np.prod(shape, dtype=int))
    # multiples of 1/8: ties are likely, sums exact
    numbers = draw(st.lists(st.integers(-12, 12), min_size=count, max_size=count))
    scale = 8 if variable.dtype.kind == "f" else 1
    return (np.array(numbers, float).reshape(shape) / scale).astype(variable.dtype)


@frozen
class _Variable:
    """A named value in the generated source."""

    name: str
    dtype: np.dtype
    shape: tuple


def _indent_lines(lines: list[str]) -> list[str]:
    """The lines of a body."""
    return [f"    {line}" for line in lines]


@define(eq=False)
class _Writer:
    """Writes the lines of a function. ``scope``: the variables that the next line can read."""

    draw: Callable
    style: _Style
    count: int = field(default=0)

    def pick(self, options):
        """One of the options, drawn by Hypothesis."""
        return self.draw(st.sampled_from(list(options)))

    def fresh(self, letter: str) -> str:
        """A new name."""
        self.count += 1
        return f"{letter}{self.count}"

    def block(self, scope: list[_Variable], depth: int, most: int) -> list[str]:
        """Statements; the names that they bind are added to ``scope``."""
        lines = []
        for _ in range(self.draw(st.integers(1, most))):
            kind = self.pick(self.style.kinds) if depth < self.style.max_depth else "expression"
            lines += getattr(self, kind)(scope, depth)
        return lines

    # ---- expressions ----

    def value(self, scope: list[_Variable], shape: tuple, dtype=None) -> str:
        """An expression of this shape, and of this dtype if one is given."""
        fitting = [v for v in scope if v.shape == shape]
        result = self.pick(fitting[::-1])
        if dtype is None or result.dtype == dtype:
            return result.name
        return f"{result.name}.astype({dtype.char!r})"

    def expression_of(
        self, scope: list[_Variable], shape: tuple, dtype, index: bool = False
    ) -> str:
        """An expression of this type whose values are small."""
        templates = {
            "f": _SMOOTH if self.style.smooth else _SMOOTH + _TIES,
            "i": _WHOLE,
            "b": _BOOLEAN,
        }
        options = [*templates[dtype.kind]]
        if shape and dtype.kind != "b":
            options += _ALONG[:1] if self.style.named else _ALONG
        if dtype.kind == "f":
            options += _MADE[shape]
            options += _COUNTED[:1] * (index and shape == _COLUMN) + _COUNTED[1:] * (
                index and shape == _SCALAR
            )
        a, b = (self.value(scope, shape, dtype) for _ in "ab")
        parts = {x: self.value(scope, kind, dtype) for x, kind in _SHAPES.items()}
        text = self.pick(options).format(a=a, b=b, **parts)
        if dtype.kind == "f":
            text = f"np.tanh({text}{' + i' * index * self.draw(st.booleans())})"
        return text if self.style.smooth else f"({text}).astype({dtype.char!r})"

    def dtype(self) -> np.dtype:
        """The dtype of a value."""
        return np.dtype(float) if self.style.smooth else self.pick(_DTYPES)

    def shape(self) -> tuple:
        """The shape of a value."""
        return self.pick(_SHAPES.values())

    def test(self, scope: list[_Variable]) -> str:
        """A truth value that rounding does not change."""
        a = self.value(scope, self.shape())
        return self.pick([f"{a}.sum() > 0.3", "k > 1", f"{a}.sum() < 1.7", "k % 2"])

    def body(
        self, head: str, scope: list[_Variable], depth: int, results, index=False
    ) -> list[str]:
        """A function with ``head``; it returns an expression for each (shape, dtype)."""
        inner = list(scope)
        lines = self.block(inner, depth + 1, 2) if self.draw(st.booleans()) else []
        texts = [self.expression_of(inner, shape, dtype, index) for shape, dtype in results]
        return [f"def {head}:", *_indent_lines([*lines, f"return {', '.join(texts)}"])]

    def bound(self, scope: list[_Variable], shape: tuple, dtype, letter: str = "v") -> str:
        """The name of a new value."""
        scope.append(_Variable(self.fresh(letter), dtype, shape))
        return scope[-1].name

    # ---- statements ----

    def expression(self, scope: list[_Variable], depth: int) -> list[str]:
        """An assignment."""
        shape, dtype = self.shape(), self.dtype()
        text = self.expression_of(scope, shape, dtype)
        return [f"{self.bound(scope, shape, dtype)} = {text}"]

    def chosen(
        self, scope: list[_Variable], depth: int, count: int
    ) -> tuple[list[str], list, tuple]:
        """(lines, names of functions of one parameter, (operand, shape, dtype of the result))."""
        kinds = [(self.shape(), self.dtype()) for _ in range(2)]
        operand = self.value(scope, *kinds[0])
        lines, names = [], []
        for _ in range(count):
            names.append(self.fresh("f"))
            param = _Variable(self.fresh("p"), kinds[0][1], kinds[0][0])
            lines += self.body(f"{names[-1]}({param.name})", [*scope, param], depth, kinds[1:])
        return lines, names, (operand, *kinds[1])

    def cond(self, scope: list[_Variable], depth: int) -> list[str]:
        """A conditional."""
        test = self.test(scope)
        lines, names, (operand, *kind) = self.chosen(scope, depth, 2)
        new = self.bound(scope, *kind)
        return [*lines, f"{new} = lt.cond({test}, {', '.join(names)}, {operand})"]

    def switch(self, scope: list[_Variable], depth: int) -> list[str]:
        """A choice of several."""
        index = self.pick(["k", "k - 1", "(k > 1).astype(int)"])
        lines, names, (operand, *kind) = self.chosen(scope, depth, self.draw(st.integers(1, 3)))
        new = self.bound(scope, *kind)
        return [*lines, f"{new} = lt.switch({index}, [{', '.join(names)}], {operand})"]

    def every(self) -> str:
        """The text of a loop's option ``checkpoint_every``, or nothing."""
        return self.pick(["", "", ", checkpoint_every=2"])

    def fori(self, scope: list[_Variable], depth: int) -> list[str]:
        """A counted loop, of one value."""
        kind, name = (self.shape(), self.dtype()), self.fresh("f")
        init = self.value(scope, *kind)
        param = _Variable(self.fresh("p"), kind[1], kind[0])
        head = f"{name}(i, {param.name})"
        lines = self.body(head, [*scope, param], depth, [kind], index=True)
        call = f"lt.fori_loop({self.pick(_BOUNDS)}, {name}, {init}{self.every()})"
        return [*lines, f"{self.bound(scope, *kind)} = {call}"]

    def repeat(self, scope: list[_Variable], depth: int) -> list[str]:
        """A loop with a test, of a number and a value."""
        kind, name, test = (self.shape(), self.dtype()), self.fresh("f"), self.fresh("f")
        init = self.value(scope, *kind)
        param = _Variable(self.fresh("p"), kind[1], kind[0])
        inner = self.body(f"{name}(carry)", [*scope, param], depth, [kind])
        inner.insert(1, f"    i, {param.name} = carry")
        inner[-1] = inner[-1].replace("return ", "return i + 1, ", 1)
        more = self.pick([" & (carry[1].sum() < 1.7)", ""])
        tested = [f"def {test}(carry):", f"    return (carry[0] < {self.pick('123')}){more}"]
        call = f"lt.while_loop({test}, {name}, ({self.pick(['0', 'k'])}, {init}){self.every()})"
        return [*inner, *tested, f"_, {self.bound(scope, *kind)} = {call}"]

    def elements(self, scope: list[_Variable]) -> tuple[list[str], list[_Variable]]:
        """(arrays to scan over, the parameters for their elements)."""
        texts, params = [], []
        for _ in range(self.draw(st.integers(1, 2))):
            shape, dtype = self.pick([_COLUMN, _TABLE]), self.dtype()
            texts.append(self.value(scope, shape, dtype))
            params.append(_Variable(self.fresh("p"), dtype, shape[1:]))
        return texts, params

    def scan(self, scope: list[_Variable], depth: int) -> list[str]:
        """A loop over elements."""
        kind, out, name = (self.shape(), self.dtype()), self.row_kind(), self.fresh("f")
        init = self.value(scope, *kind)
        texts, params = self.elements(scope)
        param = _Variable(self.fresh("p"), kind[1], kind[0])
        inner = self.body(f"{name}({param.name}, x)", [*scope, param, *params], depth, [kind, out])
        inner.insert(1, f"    {', '.join(p.name for p in params)}, = x")
        options = self.pick(["", ", reverse=True"]) + ("" if self.style.named else self.every())
        call = f"lt.scan({name}, {init}, ({', '.join(texts)},){options})"
        last = self.bound(scope, *kind)
        return [*inner, f"{last}, {self.bound(scope, ('n', *out[0]), out[1])} = {call}"]

    def row_kind(self) -> tuple:
        """The shape and dtype of a row."""
        return self.pick([_SCALAR, _ROW]), self.dtype()

    def map(self, scope: list[_Variable], depth: int) -> list[str]:
        """A function of each element."""
        out, name = self.row_kind(), self.fresh("f")
        texts, params = self.elements(scope)
        head = f"{name}({', '.join(p.name for p in params)})"
        inner = self.body(head, [*scope, *params], depth, [out])
        new = self.bound(scope, ("n", *out[0]), out[1])
        return [*inner, f"{new} = lt.map({name}, {', '.join(texts)})"]

    def operator(self) -> str:
        """An associative operation."""
        return self.pick(_OPERATORS if self.style.smooth else _OPERATORS + _EXTREMA)

    def combine(self, scope: list[_Variable], depth: int) -> list[str]:
        """Elements combined by an associative operation."""
        shape, op, dtype = self.pick([_COLUMN, _TABLE]), self.operator(), np.dtype(float)
        xs = f"np.tanh({self.value(scope, shape, dtype)})"
        if self.draw(st.booleans()):
            start = f"np.full({shape[1:]}, {_NEUTRAL[op]})"
            call = f"lt.reduce({op}, {start}, {xs})"
            return [f"{self.bound(scope, shape[1:], dtype)} = {call}"]
        options = self.pick(["", ", reverse=True"])
        new = self.bound(scope, shape, dtype)
        return [f"{new} = lt.associative_scan({op}, {xs}{options})"]

    def place(self, scope: list[_Variable], depth: int) -> list[str]:
        """Elements written to indices, or combined with the elements there."""
        shape, op, dtype = self.pick([_COLUMN, _ROW]), self.operator(), np.dtype(float)
        dest = self.value(scope, shape, dtype)
        values = f"np.tanh({self.value(scope, _COLUMN, dtype)})"
        new = self.bound(scope, shape, dtype)
        if self.draw(st.booleans()):
            return [f"{new} = lt.scatter({dest}, j, {values})"]
        return [f"{new} = lt.reduce_by_index({dest}, {op}, {_NEUTRAL[op]}, j, {values})"]


def _control_function(source: str) -> _ControlFunction:
    """The function of this source, with recorded and with plain control flow."""
    file = f"<function {hash(source):x}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    functions = []
    for namespace in (_RECORDED, PLAIN):
        names: dict = {"np": np, "lt": namespace}
        exec(compile(source, file, "exec"), names)
        functions.append(names["f"])
    return _ControlFunction(source, *functions)
