"""``TestWriter``: the text of a test whether the arguments of a call are of one kind.

``tests_of_call`` makes the tests for arguments like given ones; ``quick_calls`` in this folder
makes functions of them.
"""

from collections.abc import Callable, Sequence, Set
from enum import Enum
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
import optree

from letir.ast import LATE_BOUND
from letir.ast.pytrees import has_fields
from letir.ast.sizes.size import Size
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.tree_nodes.record_classes import init_arguments, other_attributes
from letir.eval.arguments import is_static
from letir.eval.float_warnings import file_left_out
from letir.executor.argument_spec import PLAIN_SCALARS

_FILE = file_left_out(__file__)
_MAX_LEAVES = 200
_GENERATORS = (np.random.Generator, np.random.RandomState)


class NotPlain(Exception):
    """Raised for arguments for which no test can be generated."""


class TestWriter:
    """Writes the text of the test, a function of nested arguments, and the names that it uses."""

    def __init__(
        self, generators: Sequence, draws_in_python: bool = False, shapes: Sequence[tuple] = ()
    ):
        self.names: dict[str, Any] = {"ndarray": np.ndarray}
        self.draws_in_python = draws_in_python  # whether any generator has a test
        self.generators = [*map(id, generators)]  # that draw without copies of their states
        self.static: Set[int | str] = frozenset()  # positions and names of static arguments
        self.shapes = shapes  # of the leaves, if some sizes are symbolic
        self.symbols: dict[Size, str] = {}  # a variable for each symbolic size
        self.tests: list[str] = []
        self.leaves: list = []
        self.leaf_texts: list[str] = []
        self.count = 0  # of positional arguments
        self.is_brief = False  # whether one item stands for all items of a sequence
        self.uses_scipy = False  # whether a function among the arguments calls SciPy
        self.tests_order = True  # whether the memory order of arrays matters
        self.takes_objects = False  # whether the class of any other object is a test

    def name(self, value: Any) -> str:
        """A name for a value."""
        name = f"k{len(self.names)}"  # does not occur in the functions of plans
        self.names[name] = value
        return name

    def add(self, value: Any, text: str, first: str = "") -> None:
        """Add the tests of a value, whose expression is ``text``, and of its items.

        ``first``: the expression for the first use, which assigns the value to ``text``.
        """
        kind, first = type(value), first or text
        if value is None:
            self.tests.append(f"{text} is None")
        elif kind is np.ndarray:
            self.tests.append(
                f"type({first}) is ndarray and {text}.dtype is {self.name(value.dtype)} and "
                f"{self.shape_test(value, text)}"
            )
            if self.tests_order:
                flag = "" if value.flags.c_contiguous else "not "
                self.tests[-1] += f" and {flag}{text}.flags.c_contiguous"
            self.add_leaf(value, text)
        elif kind in PLAIN_SCALARS:
            self.tests.append(f"type({first}) is {self.name(kind)}")
            self.add_leaf(value, text)
        elif kind is bool or isinstance(value, Enum):
            self.tests.append(f"{first} is {self.name(value)}")
        elif kind is str:
            self.tests.append(f"type({first}) is {self.name(str)} and {text} == {self.name(value)}")
        elif id(value) in self.generators or (self.draws_in_python and kind in _GENERATORS):
            bits = self.name(type(value._bit_generator))
            test = f"type({first}) is {self.name(kind)} and type({text}._bit_generator) is {bits}"
            self.tests.append(test)
            self.add_leaf(value, text)
        elif kind in (tuple, list, dict):
            self.tests.append(f"type({first}) is {kind.__name__} and len({text}) == {len(value)}")
            is_first_enough = self.is_brief and kind is not dict
            self.add_items(value[:1] if is_first_enough else value, text)
        elif isinstance(value, tuple) and optree.is_namedtuple(value):
            self.tests.append(f"type({first}) is {self.name(kind)}")
            self.add_items(value, text)
        elif callable(value) and is_static(value) and not has_fields(kind):
            self.add_function(value, text, first)
        elif self.takes_objects or has_fields(kind):
            self.tests.append(f"type({first}) is {self.name(kind)}")
            for name in self.fields_of(value, text) if has_fields(kind) else ():
                self.bind(f"{text}.{name}", getattr(value, name))
        else:
            raise NotPlain

    def fields_of(self, value: Any, text: str) -> tuple[str, ...]:
        """The attributes of an instance of an attrs class or dataclass, in the order of the leaves.

        Adds the test of their number.
        """
        names = tuple(init_arguments(type(value)))
        others = other_attributes(value, names)
        attributes = getattr(value, "__dict__", {})
        if not attributes.keys() >= {*others}:
            raise NotPlain  # in slots, which another instance may not have set
        if hasattr(value, "__dict__"):
            self.tests.append(f"len({text}.__dict__) == {len(attributes)}")
        return (*names, *others)

    def add_static(self, value: Any, text: str) -> None:
        """Add the tests of a static argument, which is not a leaf of the plan."""
        kind = type(value)
        if value is None or kind is bool:
            self.tests.append(f"{text} is {value}")
        elif kind in (int, str, float) and (value or kind is not float) and value == value:
            named = self.name(kind)
            self.tests.append(f"type({text}) is {named} and {text} == {self.name(value)}")
        elif kind is tuple:
            self.tests.append(f"type({text}) is tuple and len({text}) == {len(value)}")
            for i, item in enumerate(value):
                self.add_static(item, f"{text}[{i}]")
        elif kind.__eq__ is object.__eq__ or kind.__module__.startswith("letir."):
            self.tests.append(f"{text} is {self.name(value)}")
        else:
            raise NotPlain  # the same value may need another plan after a change

    def add_function(self, value: Any, text: str, first: str) -> None:
        """Add the tests of a function, whose captured and global numbers must not have changed."""
        outside = LATE_BOUND["values_read"](value)
        if outside is None:
            raise NotPlain
        self.uses_scipy |= outside.uses_scipy
        if is_known_by_code(value):
            self.add_tests_of_code(value, text, first)
        else:
            self.tests.append(f"{first} is {self.name(value)}")
        for place in outside.places:
            self.add_outside_value(*place)

    def add_tests_of_code(self, value: FunctionType, text: str, first: str) -> None:
        """Add the tests that a function is equal to one without captured or default values."""
        # equal functions serve as well: each call may make a new lambda
        self.tests.append(
            f"type({first}) is {self.name(FunctionType)} and "
            f"{text}.__code__ is {self.name(value.__code__)} and "
            f"{text}.__closure__ is {text}.__defaults__ is {text}.__kwdefaults__ is None and "
            f"{text}.__globals__ is {self.name(value.__globals__)}"
        )

    def shape_test(self, value: np.ndarray, text: str) -> str:
        """The test of an array's shape, in which sizes may be symbolic."""
        shape = self.shapes[len(self.leaves)] if self.shapes else value.shape
        if is_static_shape(shape):
            return f"{text}.shape == {shape}"
        tests = [f"{text}.ndim == {len(shape)}"]
        for axis, size in enumerate(shape):
            extent = f"{text}.shape[{axis}]"
            if type(size) is not Size or size in self.symbols:
                tests.append(f"{extent} == {self.symbols.get(size, size)}")
                continue
            least = size.substitute(dict.fromkeys(size.names, 0))
            if size - least not in map(Size.named, size.names):
                raise NotPlain  # other sizes determine this one
            self.symbols[size] = f"z{len(self.symbols)}"
            tests.append(f"({self.symbols[size]} := {extent}) >= {least}")
        return " and ".join(tests)

    def add_call(self, args: tuple, kwargs: dict) -> None:
        """Add the tests of the arguments of a call, the positional ones called a0, a1, ..."""
        self.count = len(args)
        self.tests.append(f"len(kwargs) == {len(kwargs)}" if kwargs else "not kwargs")
        for i, value in enumerate(args):
            (self.add_static if i in self.static else self.add)(value, f"a{i}")
        for name in sorted(kwargs.keys() & self.static):
            self.tests.append(f"{name!r} in kwargs")
            self.add_static(kwargs[name], f"kwargs[{name!r}]")
        named = {name: value for name, value in kwargs.items() if name not in self.static}
        self.add_items(named, "kwargs")

    def add_items(self, value: Any, text: str) -> None:
        """Add the tests of the items of a tuple, list or dict."""
        if type(value) is not dict:
            for i, item in enumerate(value):
                self.bind(f"{text}[{i}]", item)
            return
        if {*map(type, value)} not in ({str}, {int}, set()):
            raise NotPlain
        is_ordered = text != "kwargs"  # a function of named parameters does not see their order
        if is_ordered and value:
            self.tests.append(f"(*{text},) == {self.name(tuple(value))}")
        for key in sorted(value):  # in the order of pytree leaves
            named = self.name(key)
            self.tests += [] if is_ordered else [f"{named} in {text}"]
            self.bind(f"{text}[{named}]", value[key])

    def bind(self, text: str, value: Any) -> None:
        """Assign a value to a new variable, and add the tests of the value."""
        if value is None:
            self.tests.append(f"{text} is None")
            return
        variable = f"v{len(self.tests)}"
        self.add(value, variable, f"({variable} := {text})")

    def add_outside_value(self, holder: Any, name: str | int | None, value: Any) -> None:
        """Add the test that a global, or a captured variable (no ``name``), still has its value."""
        self.tests.append(f"{self.outside_text(holder, name)} is {self.name(value)}")

    def outside_text(self, holder: Any, name: str | int | None) -> str:
        """The expression for the value of a global, or of a captured variable (no ``name``)."""
        text = self.name(holder)
        return f"{text}.cell_contents" if name is None else f"{text}[{name!r}]"

    def add_leaf(self, value: Any, text: str) -> None:
        """Add a leaf of the plan."""
        self.leaves.append(value)
        self.leaf_texts.append(text)
        if len(self.leaves) > _MAX_LEAVES:
            raise NotPlain

    def make_function(self) -> Callable:
        """The function ``match(args, kwargs)``: returns the leaves, or None if a test fails."""
        return self.function_maker()()

    def function_maker(self) -> Callable[[], Callable]:
        """A function that makes ``match(args, kwargs)``, and does not keep the leaves alive."""
        lines = ["def match(args, kwargs):", f" if len(args) != {self.count}: return None"]
        if self.count:
            lines.append(f" {''.join([f'a{i}, ' for i in range(self.count)])}= args")
        lines += [f" if not ({test}): return None" for test in self.tests]
        lines += [f" return [{', '.join(self.leaf_texts)}]"]
        return partial(define_function, "match", "\n".join(lines), dict(self.names))


def is_known_by_code(value: Any) -> bool:
    """Whether a value is a function that equals all others with its code and namespace."""
    return type(value) is FunctionType and not (
        value.__closure__ or value.__defaults__ or value.__kwdefaults__ or vars(value)
    )


def define_function(name: str, text: str, names: dict) -> Callable:
    """The function ``name`` that this source code defines."""
    exec(compile(text, _FILE, "exec"), names)
    result: Callable = names.pop(name)  # else the function's globals would contain the function
    return result


def tests_of_call(
    args: tuple,
    kwargs: dict,
    leaves: Sequence,
    generators: Sequence = (),
    shapes: Sequence[tuple] = (),
    static: Set[int | str] = frozenset(),
    writer: type[TestWriter] = TestWriter,
) -> Any:
    """The text of the tests for arguments like these; None for kinds without tests.

    ``leaves``: the leaves of ``args`` and ``kwargs`` that the plan takes; ``generators``: the
    random generators among them; ``shapes``: the shapes of the leaves if some are symbolic;
    ``static``: the positions and names of static arguments; ``writer``: writes the tests.
    """
    text = writer(generators, shapes=shapes)
    text.static = static
    try:
        text.add_call(args, kwargs)
    except NotPlain:
        return None
    # in the order in which the executor found them
    return text if [*map(id, text.leaves)] == [*map(id, leaves)] else None


def tests_of_kind(
    args: tuple,
    kwargs: dict,
    *,
    is_brief: bool,
    static: Set[int | str] = frozenset(),
    takes_objects: bool = False,
) -> TestWriter:
    """The tests of the arguments for which the Python function is called.

    ``is_brief``: test only the first item of each sequence, because the function takes any
    arguments. ``takes_objects``: test only the class of arguments other than arrays and numbers.
    Raises NotPlain for arguments that have no tests.
    """
    text = TestWriter((), draws_in_python=True)
    text.is_brief, text.tests_order, text.static = is_brief, False, static
    text.takes_objects = takes_objects
    text.add_call(args, kwargs)
    return text
