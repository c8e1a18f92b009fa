"""``ArgumentSpec``: the properties of arguments to which a plan is specialised [semantics.md F1].

Calls find their plans by short keys, which are computed faster than a spec.

For an array: dtype, shape, and whether it is C-contiguous; for a Python number its type; for a
Variable whether it requires grad in the current mode; for a static value the value and its type.
"""

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import CellType, CodeType, FunctionType, MethodType, NoneType
from typing import Any

import numpy as np
import optree
from attrs import evolve, field, frozen

from letir.ast import LATE_BOUND
from letir.ast.attrs import token
from letir.ast.pytrees import NAMESPACE, flatten, items_of
from letir.ast.types import ArrayType, Size
from letir.errors import DTypeError, cyclic_tree_error, mark_unrecorded_code
from letir.eval.arguments import StaticLeaf, is_static
from letir.eval.array_modules import device_array_class, type_of
from letir.tracing.callers import is_user_module
from letir.tracing.tracer import Tracer

# Python numbers and NumPy scalars: a plan depends on nothing but their class.
_BINDING = (MethodType, functools.partial)  # functions of an object that may change
PLAIN_SCALARS = frozenset([int, float, complex, *(np.dtype(c).type for c in "?bhilBHILefdFD")])


def key_of_arrays(leaves: Sequence, key: list | None = None) -> tuple | None:
    """The short key of positional arrays and numbers; None if there is any other argument."""
    key = [] if key is None else key
    add, ndarray = key.append, np.ndarray
    for leaf in leaves:
        kind = type(leaf)
        if kind is ndarray:
            add(leaf.dtype)
            add(leaf.shape)
            add(leaf.flags.c_contiguous)
        elif kind in PLAIN_SCALARS:
            add(kind)
        elif kind is bool or kind is str:  # static values; the type distinguishes True from 1
            add(kind)
            add(leaf)
        elif is_static(leaf):
            try:
                add(kind)
                add(token_of_static(leaf))
            except DTypeError:  # the call itself will run the Python function
                return None
        elif "__letir_variable__" in kind.__dict__:  # not a subclass, which may behave differently
            origin = leaf.arg
            add(kind)
            add(origin.type)
            add(origin.requires_grad and LATE_BOUND["is_grad_enabled"]())
            add(leaf.array.flags.c_contiguous)
        elif "__letir_state__" in kind.__dict__:  # a random generator
            add(kind)
            add(leaf.shape)
        elif kind is device_array_class():
            add(kind)
            add(leaf.dtype)
            add(leaf.shape)
            add(leaf.flags.c_contiguous)
            add(leaf.device.id)
        else:
            return None
    return tuple(key)


def key_of_call(args: tuple, kwargs: dict, static: Sequence) -> tuple[tuple | None, Sequence]:
    """(short key, leaves) of a call with keywords, static values, or nested arguments."""
    try:
        tokens = [*map(token, static)]
    except DTypeError:  # an unhashable static value, which the call itself will refuse
        return None, ()
    if kwargs or tokens:  # most such calls need not be flattened as a tree either
        names = sorted(kwargs)  # in the order of pytree leaves
        leaves = [*args, *[kwargs[name] for name in names]]
        key = key_of_arrays(leaves, [*names, *tokens, len(tokens)])
        if key is not None:
            return key, leaves
    arguments: Any = (args, kwargs)
    try:
        leaves, tree = optree.tree_flatten(arguments, namespace=NAMESPACE)
    except RecursionError:
        raise cyclic_tree_error() from None
    return key_of_arrays(leaves, [tree, *tokens, _key_orders(args, *kwargs.values())]), leaves


def _key_orders(*values: Any) -> tuple:
    """The keys of the dicts in nested arguments, in the order in which a function goes through
    them; equal trees may have others.
    """
    found: list[tuple] = []
    todo = list(values)
    for value in todo:  # each container appends its items
        if isinstance(value, dict):
            items = value if type(value) is dict else items_of(value)
            found += [tuple(items)] if len(items) > 1 else []
            todo += items.values()
        elif isinstance(value, list | tuple):
            todo.extend(value)
    return tuple(found)


def token_of_static(value: Any, outer: tuple = ()) -> Any:
    """A hashable token of a static argument: plans for equal tokens are the same.

    Two functions have equal tokens if their code and their captured and global values are equal, as
    for a lambda that each call makes again. Raises DTypeError if these values may change
    between calls; the executor then calls the Python function. ``outer``: the functions that
    capture this one.
    """
    kind = type(value)
    if kind is FunctionType:
        if value in outer:  # it calls itself
            return value.__code__
        captured = [_cell_content(cell) for cell in value.__closure__ or ()]
        captured += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).items()]
        parts = [token_of_static(part, (*outer, value)) for part in captured]
        names = value.__globals__
        for name in names_in_code(value.__code__) if is_user_module(names) else ():
            if name in names:
                is_function = type(names[name]) is FunctionType
                parts.append(names[name] if is_function else token_of_static(names[name], (value,)))
        return value.__code__, id(names), tuple(parts)
    if kind is tuple:
        return (tuple, *[token_of_static(part, outer) for part in value])
    is_jitted = hasattr(kind, "__letir_transformed__")
    if is_jitted and value.__letir_held__ is None:
        return value, token_of_static(value.__letir_executor__.f, outer)
    holds = kind in _BINDING or is_jitted  # an object that may change
    if kind in PLAIN_SCALARS or value is None or (is_static(value) and not holds):
        return token(value)
    raise mark_unrecorded_code(
        DTypeError(
            f"the argument {outer[0].__qualname__ if outer else kind.__name__} uses an object of "
            f"type {kind.__name__}, which may change between calls\n"
            "  pass arrays as arguments of their own, and functions that use numbers only"
        )
    )


def _cell_content(cell: CellType) -> Any:
    """The value of a captured variable; a description if it has none yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return "no value"


# ---- what functions name ----

# (namespace, name, value) of a global, (cell, None, value) of a captured variable, or (items, key,
# value) of an argument of a partial function
Place = tuple[Any, str | int | None, Any]


@functools.lru_cache(1024)
def nested_codes(code: CodeType) -> tuple[CodeType, ...]:
    """A code object, and those of all functions and classes that are defined in it."""
    result = [code]
    for inner in result:  # each one appends those in it
        result += [constant for constant in inner.co_consts if type(constant) is CodeType]
    return tuple(result)


@functools.lru_cache(1024)
def names_in_code(code: CodeType) -> tuple[str, ...]:
    """The names of globals and attributes in a code object, and in the functions inside it."""
    return tuple(dict.fromkeys([name for inner in nested_codes(code) for name in inner.co_names]))


def named_places(function: FunctionType, names: Iterable[str]) -> list[Place]:
    """The places of the globals with these names, and of all variables that a function captures.

    Without variables that have no value yet.
    """
    space = function.__globals__
    result: list[Place] = [(space, name, space[name]) for name in names if name in space]
    for cell in function.__closure__ or ():
        with suppress(ValueError):
            result.append((cell, None, cell.cell_contents))
    return result


def search_places(
    f: Any, places_in: Callable[[Place], Sequence[Place] | None], most: int = sys.maxsize
) -> bool:
    """Whether no value ends the search: that of ``f``, the values of the places in it, and so on.

    ``places_in(place)``: the places in the value of a place, () if there are none; None ends the
    search. It is asked once about a value that has places, and about no more than ``most`` of them.
    """
    todo: list[Place] = [({}, None, f)]
    searched = set[int]()
    for place in todo:  # each one appends the places in its value
        if id(place[-1]) in searched or len(searched) > most:
            continue
        found = places_in(place)
        if found is None:
            return False
        if found:
            searched.add(id(place[-1]))
            todo += found
    return True


@frozen
class _ArraySpec:
    """The properties of one array argument; ``requires_grad``: in the current mode.

    ``holder`` is the argument's class: in-place operators treat scalars and 0-d arrays differently.
    """

    aval: ArrayType
    contiguous: bool = True
    requires_grad: bool = False
    holder: type = np.ndarray
    device: str = "cpu"

    @classmethod
    def from_array(cls, leaf) -> "_ArraySpec":
        """The spec of one argument. Raises DTypeError unless it is an array of numbers."""
        aval, holder = type_of(leaf), type(leaf)
        if issubclass(holder, Tracer):
            return cls(aval, holder=holder)
        is_variable = hasattr(holder, "__letir_run__")
        array = leaf.array if is_variable else leaf
        flags, device = getattr(array, "flags", None), getattr(array, "device", "cpu")
        contiguous = flags is None or bool(flags.c_contiguous)
        requires_grad = is_variable and leaf.requires_grad and LATE_BOUND["is_grad_enabled"]()
        return cls(aval, contiguous, requires_grad, holder, str(device))

    def with_shape(self, shape: tuple) -> "_ArraySpec":
        """The same spec with another shape."""
        return evolve(self, aval=ArrayType(self.aval.dtype, shape, self.aval.weak))

    def __str__(self):
        notes = [] if self.contiguous else ["not contiguous"]
        notes += ["requires grad"] if self.requires_grad else []
        return f"{self.aval!r}{' (' + ', '.join(notes) + ')' if notes else ''}"


@frozen
class _StaticSpec:
    """A static argument: equal to another of the same type and value."""

    token: object
    value: object = field(eq=False)

    def __str__(self):
        return repr(self.value)


@frozen(eq=False, repr=False)
class ArgumentSpec:
    """The nesting of arguments, and the spec of each leaf: the key of a plan.

    Its hash is computed once, when it is made.

    >>> spec, _ = ArgumentSpec.from_arguments((np.zeros((2, 3)), 1.0), {})
    >>> print(spec)
    float64[2, 3], float64*[]
    """

    tree: optree.PyTreeSpec
    leaves: tuple
    orders: tuple = ()  # of the keys of dicts
    digest: int = field(init=False)
    has_names: bool = field(init=False)  # whether sizes are symbolic
    is_on_device: bool = field(init=False)  # whether an argument is an array on a device

    def __attrs_post_init__(self):
        has_names = is_on_device = False
        for leaf in self.leaves:
            if type(leaf) is _ArraySpec:
                has_names |= Size in map(type, leaf.aval.shape)
                is_on_device |= leaf.device != "cpu"
        object.__setattr__(self, "digest", hash((self.tree, self.leaves)))
        object.__setattr__(self, "has_names", has_names)
        object.__setattr__(self, "is_on_device", is_on_device)

    @classmethod
    def from_arguments(cls, args: tuple, kwargs: dict) -> tuple["ArgumentSpec", list]:
        """(spec, arrays) of arguments whose static leaves are marked."""
        leaves, tree = flatten((args, kwargs))
        specs: list[_StaticSpec | _ArraySpec] = []
        arrays = []
        for leaf in leaves:
            if type(leaf) is StaticLeaf:
                specs.append(_StaticSpec(token(leaf.value), leaf.value))
            elif is_static(leaf):
                specs.append(_StaticSpec(token_of_static(leaf), leaf))
            else:
                specs.append(_ArraySpec.from_array(leaf))
                arrays.append(leaf)
        return cls(tree, tuple(specs), _key_orders(args, *kwargs.values())), arrays

    @property
    def arrays(self) -> list[_ArraySpec]:
        """The specs of the arguments that are not static."""
        return [leaf for leaf in self.leaves if type(leaf) is _ArraySpec]

    @property
    def has_variables(self) -> bool:
        """Whether one of the arguments is a Variable."""
        return any(hasattr(leaf.holder, "__letir_run__") for leaf in self.arrays)

    @property
    def requires_grad(self) -> list[bool]:
        """For each array, whether it requires grad."""
        return [leaf.requires_grad for leaf in self.arrays]

    def with_arrays(self, arrays: Sequence[_ArraySpec]) -> "ArgumentSpec":
        """The same spec with other array specs."""
        new = iter(arrays)
        leaves = [next(new) if type(leaf) is _ArraySpec else leaf for leaf in self.leaves]
        return ArgumentSpec(self.tree, tuple(leaves), self.orders)

    def __eq__(self, other):
        if type(other) is not ArgumentSpec:
            return NotImplemented
        return self.digest == other.digest and (
            (self.tree, self.leaves, self.orders) == (other.tree, other.leaves, other.orders)
        )

    def __hash__(self):
        return self.digest

    def __str__(self):
        return ", ".join(map(str, self.leaves))

    __repr__ = __str__


def has_tracer(leaves: Sequence) -> bool:
    """Whether a leaf is a tracer. Compares classes, because tracers pass ``isinstance(_,
    ndarray)``.
    """
    return any(issubclass(type(leaf), Tracer) for leaf in leaves)


def classes_of_nodes(spec: Any) -> list[type]:
    """The classes of objects among nested arguments: dataclasses, named tuples and others."""
    todo, result = [spec], []
    for node in todo:
        kind = node.type
        if kind in (None, NoneType) or (
            node.num_nodes == 1 + node.num_children and kind in _CONTAINERS
        ):
            continue
        result += [] if kind in _CONTAINERS else [kind]
        todo += node.children()
    return result


_CONTAINERS = (tuple, list, dict)
