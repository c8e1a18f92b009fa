"""``functions``: a Hypothesis strategy of NumPy functions as users write them, with arguments.

A function is Python source, which failing examples show: expressions, views, writes through views,
branches, loops. It grows line by line; each line is run as it is written, and dropped if NumPy
refuses it or if its numbers leave the range in which comparisons are meaningful.
"""

import linecache
import warnings
from collections.abc import Callable, Collection

import numpy as np
from attrs import define, field
from hypothesis import strategies as st

from letir.testing.control_sources import control_functions
from letir.testing.strategies import arrays, avals

_MAX_VALUE = 1e3
_SMOOTH = (
    *("np.sin({a})", "np.tanh({a})", "np.exp(-{a} * {a})", "{a} + {b}", "{a} - {b}", "{a} * {b}"),
    *("{a} * 0.5 + 1", "{a} ** 2", "{a} / (2 + {b} * {b})", "np.where({a} > {b}, {a}, {b})"),
    *("{a}.sum()", "{a}.sum(axis=-1)", "{a}.mean(axis=0, keepdims=True)", "np.cumsum({a}, axis=0)"),
    *("{a} @ {b}", "np.outer({a}, {b})", "np.sqrt(1 + {a} * {a})", "-{a}", "2.0 / (3 + {a} ** 2)"),
)
_ROUGH = (
    *("abs({a})", "np.floor({a})", "{a} // 2", "{a} % 3", "np.sign({a})", "{a} > {b}"),
    *("np.maximum({a}, {b})", "{a}.max(axis=-1)", "np.min({a})", "{a}.argmax()", "{a}.any(axis=0)"),
    *("np.sort({a}, axis=-1)", "{a}.astype('f4')", "{a}.astype('i2')", "{a}.astype(complex)"),
    *("{a}.astype(bool)", "np.conj({a}).real", "np.prod({a}, axis=0)", "np.clip({a}, -1, 2)"),
    *(
        "np.argsort({a}, kind='stable')",
        "np.isfinite({a})",
        "{a} == {b}",
        "{a} & {b}",
        "np.arctan2({a}, {b})",
    ),
)
_SHAPES = (
    *("{a}.T", "{a}.reshape(-1)", "{a}.copy()", "{a}[None]", "np.concatenate([{a}, {b}])"),
    *("np.stack([{a}, {a} * 2], axis=-1)", "np.swapaxes({a}, 0, -1)", "np.flip({a}, -1)"),
    *("np.broadcast_to({a}, (2, *{a}.shape))", "np.expand_dims({a}, -1)", "np.squeeze({a})"),
    *("np.roll({a}, 1)", "np.tile({a}, 2)", "np.repeat({a}, 2, axis=0)", "np.atleast_2d({a})"),
)
_ITEMS = (
    *("0", "-1", "1:", ":-1", "::-1", "::2", "..., 0", "..., 1:", ":, 0", ":, None", "...", ":0"),
    *("[0, -1]", "[[0], [-1]], 0", ":, [0, 0]", "{a} > 0", "np.array([0, -1])", "0, ..., [0]"),
)
_PARTS = ("{a}[{item}]",)
_WRITES = (
    *("{v}[{item}] = {b}", "{v}[{item}] += {b}", "{v}[{item}] *= 2", "{v} += {b}", "{v} *= 2"),
    *("{v}[{item}] = {v}[{item}][..., ::-1]", "{v}[[0, -1]] = {v}[[-1, 0]]", "{v} -= {v}"),
    *("np.add({v}, {b}, out={v})", "np.multiply({v}, {b}, out={v}[...])"),
    *("{v}[{item}], {v}[-1] = {v}[-1], {v}[{item}]", "{v}.T[0] = {b}"),
    "{v}[:0] = 0\nnp.add.at({v}, [0, 0], 1)",  # ufunc.at writes even into read-only arrays
)
_BLOCKS = (
    "if {a}.sum() > 0.5:\n    {new} = {a} * 2\nelse:\n    {new} = {b}",
    "{new} = {b}\nif {a}.size and {a}.ravel()[0] > {b}.sum():\n    {new} = {a}",
    "{new} = {a}\nfor i in range(3):\n    {new} = {new} * 0.5 + {b}",
    "{new} = {a}\nwhile 4 < abs({new}).sum() < 1e9:\n    {new} = {new} / 2",
    "{new} = {a}.copy()\nfor i in range(len({new})):\n    {new}[i] = {new}[i] + {new}[i - 1]",
    "for row in {v}:\n    row[...] = row * 2",
    "{new} = [row + 1 for row in {a}][-1]",
    "{new} = {a}\nfor i in range(int(abs({b}).sum()) % 4):\n    {new} = {new} + {a}",
)


class _Written:  # not an attrs class, which Hypothesis would print field by field
    """A function made from source text. Prints as its source."""

    def __init__(self, source: str, call: Callable):
        self.source, self.call = source, call

    def __call__(self, *args):
        return self.call(*args)

    def __repr__(self):
        return f"\n{self.source}"


def functions(
    dtypes: Collection | None = None,
    *,
    smooth: bool = False,
    writes: bool = True,
    max_lines: int = 10,
    control_flow: bool = False,
) -> st.SearchStrategy:
    """(function, arguments): plain NumPy code and arrays at which it runs without a warning.

    ``smooth``: float64 only, and differentiable away from the places where its branches change.
    ``writes``: with changes in place, through views too, also of arguments: call it with copies.
    ``control_flow``: functions of ``control_functions`` instead, which write nothing.

    >>> from hypothesis import given
    >>> import letir
    >>> from letir.testing import assert_same
    >>> @given(functions(writes=False, max_lines=3))
    ... def test_replay_is_numpy(program):
    ...     f, args = program
    ...     assert_same(f(*args), letir.trace(f, *args)(*args))
    >>> test_replay_is_numpy()
    """
    if control_flow:
        return control_functions(smooth=smooth, max_steps=max(1, max_lines // 3))
    kinds = avals([np.dtype(float)] if smooth else dtypes) if smooth or dtypes else avals()
    strong = kinds.filter(lambda aval: not aval.weak)
    values = st.lists(strong.flatmap(arrays), min_size=1, max_size=2)
    tables = [_SMOOTH, _SMOOTH, _SHAPES, _BLOCKS, _PARTS, _PARTS]
    tables += [] if smooth else [_ROUGH]
    tables += [_WRITES, _WRITES] if writes else []
    pick = st.integers(0, 255)
    line = st.tuples(st.sampled_from(range(len(tables))), pick, pick, pick, pick)
    return _draw_function(values, st.lists(line, min_size=1, max_size=max_lines), tuple(tables))


@st.composite
def _draw_function(draw, values: st.SearchStrategy, lines: st.SearchStrategy, tables: tuple):
    """A function and its arguments; a composite, so that failures show the source."""
    args = draw(values)
    return _function_of(args, [(tables[table], *picks) for table, *picks in draw(lines)])


@define(eq=False)
class _Growing:
    """The lines so far, and the values that they have at the arguments."""

    args: dict[str, np.ndarray]
    names: dict[str, object] = field(init=False)
    lines: list[str] = field(factory=list)

    def __attrs_post_init__(self):
        self.names = dict(self.args)

    def run(self, text: str) -> dict | None:
        """The values after all lines and ``text``, None if NumPy refuses it."""
        # all lines run again, because a failing line may have changed values
        names = {name: value.copy() for name, value in self.args.items()}
        try:
            with warnings.catch_warnings(action="error"):
                exec("\n".join([*self.lines, text]), {"np": np}, names)
        except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError, Warning):
            return None
        names.pop("i", None)
        names.pop("row", None)
        return names if all(map(_is_moderate, names.values())) else None

    def grow(self, templates: tuple[str, ...], which: int, a: int, b: int, item: int) -> None:
        """Add the lines of one template, filled in with values, unless they fail."""
        values = list(self.names)
        free = values[len(values) // 2 :]  # later values are changed; the first are the arguments
        text = templates[which % len(templates)].format(
            a=values[a % len(values)],
            b=values[b % len(values)],
            v=free[a % len(free)],
            item=_ITEMS[item % len(_ITEMS)].format(a=values[a % len(values)]),
            new=f"v{len(self.lines)}",
        )
        if templates not in (_WRITES, _BLOCKS):
            text = f"v{len(self.lines)} = {text}"
        names = self.run(text)
        if names is not None:
            self.names = names
            self.lines.append(text)


def _is_moderate(value) -> bool:
    """Whether ``value`` is a small array, or a number, with finite moderate elements."""
    if not isinstance(value, np.ndarray | np.generic | int | float | complex):
        return False
    array = np.asarray(value)
    return array.size < 200 and bool(np.all(abs(array.astype(complex)) < _MAX_VALUE))


def _function_of(values: list, lines: list[tuple]) -> tuple[_Written, list]:
    """The function with these lines, which NumPy accepts, and its arguments."""
    params = [f"x{i}" for i in range(len(values))]
    growing = _Growing(dict(zip(params, values, strict=True)))
    for i, name in enumerate(params):
        growing.grow((f"{name}.copy()",), 0, 0, 0, i)
    for templates, *picks in lines:
        growing.grow(templates, *picks)
    results = [name for name in growing.names if name not in params]
    body = "\n".join([*growing.lines, f"return {', '.join(results)},"])
    source = f"def f({', '.join(params)}):\n" + "".join(f"    {t}\n" for t in body.splitlines())
    return _function_of_source(source), values


def _function_of_source(source: str) -> _Written:
    """The function of the source, whose lines appear in messages of Python and letir."""
    file = f"<function {hash(source):x}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict = {"np": np}
    exec(compile(source, file, "exec"), names)
    return _Written(source, names["f"])
