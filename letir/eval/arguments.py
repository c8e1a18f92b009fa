"""Arguments and results of a call [semantics.md B7]: named, flattened, checked, nested again.

At the end: static arguments, which are not parameters because the program is specialised to them.
"""

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import optree
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.bounded_cache import BoundedCache
from letir.ast.pytrees import Static, Tree, flatten
from letir.ast.terms import Bind, Lambda, Local
from letir.ast.types import ArrayType, Size, Undef
from letir.errors import DTypeError, ShapeError
from letir.eval.array_modules import argument_text, type_of
from letir.eval.float_warnings import restore_abandoned_state

_MAX_SHOWN = 6  # parameters in an error
_OTHER_STRUCTURE = (
    "  the program changes its arguments, so that they may differ after a call: trace again, or "
    "use letir.jit"
)


def flat_arguments(fn: Lambda, args: tuple, kwargs: dict) -> list:
    """The array arguments in the order of the parameters, for a run.

    Error states that interrupted calls left behind are restored first. Raises DTypeError if the
    nesting of the arguments differs from the recorded one.
    """
    restore_abandoned_state()
    if type(fn) is not Lambda:
        raise LATE_BOUND["not_a_program_error"]("run_forward", fn)
    if fn.in_tree is not None:
        try:
            return fn.in_tree.leaves_of((args, kwargs), "calling the program")
        except DTypeError as error:
            if fn.out_tree is not None and fn.out_tree.stores:
                error.args = (f"{error}\n{_OTHER_STRUCTURE}",)
            raise
    if kwargs:
        raise DTypeError(
            f"the program has no keyword arguments, found {', '.join(kwargs)}\n"
            "  pass arrays by position, in the order of its parameters"
        )
    return list(args)


def checked_arguments(
    fn: Lambda, leaves: list, type_of: Callable[[Any], ArrayType] = type_of
) -> list:
    """``leaves``, checked against the types of the parameters; int is widened to float or complex.

    A parameter of unknown type accepts any array. Raises ShapeError or DTypeError that lists every
    mismatch.
    """
    if len(leaves) != len(fn.params):
        raise wrong_count_error(fn, len(leaves))
    others, problems = [], {}
    for i, param in enumerate(fn.params):
        expected = param.type
        if expected is not None and expected.weak:
            # in place: a second list would keep arrays
            leaves[i] = _widen_number(leaves[i], expected)
        try:
            actual = type_of(leaves[i])
        except DTypeError as error:
            if leaves[i] is not Undef:
                problems[i] = str(error).replace("\n  ", ": ")
            elif param not in fn.memo(_undefinable_params):
                problems[i] = (
                    "Undef is a missing cotangent, and the program computes with this value"
                )
            continue
        # types are interned: `is` decides, except for symbolic sizes and mismatches
        if actual is not expected and expected is not None:
            others.append((i, expected, actual))
    if others or problems:
        _check_others(fn, others, problems)
    return leaves


def wrong_count_error(fn: Lambda, count: int) -> ShapeError:
    """The error for a call of a program with ``count`` arrays, which are too many or too few."""
    names = [f"{param.name}: " if param.name else "" for param in fn.params[:_MAX_SHOWN]]
    types = ["any array" if param.type is None else repr(param.type) for param in fn.params]
    shown = [name + aval for name, aval in zip(names, types, strict=False)]
    shown += ["..."] * (len(fn.params) > _MAX_SHOWN)
    arrays = "1 array" if len(fn.params) == 1 else f"{len(fn.params)} arrays"
    return ShapeError(
        f"the program takes {arrays}, found {count}\n"
        f"  pass one for each of its parameters: ({', '.join(shown)})"
    )


def _undefinable_params(fn: Lambda) -> frozenset[Local]:
    """The parameters that may be ``Undef``: cotangents that only steps of a gradient program read,
    and parameters without a use.
    """
    return frozenset(fn.params).difference(
        arg for bind in fn.binds for arg in bind.args[_cotangent_count(bind) :]
    )


def _cotangent_count(bind: Bind) -> int:
    """The number of leading operands of a bind that may be ``Undef`` [semantics.md D6]."""
    count = bind.op.undefinable
    return count(**bind.attrs) if callable(count) else count


def _widen_number(number, expected: ArrayType):
    """A Python int or float converted to the float or complex type of a weak parameter."""
    kind = {"f": float, "c": complex}.get(expected.dtype.kind)
    return kind(number) if kind and type(number) in (int, float) else number


def _check_others(fn: Lambda, others: list[tuple], problems: dict[int, str]) -> None:
    """Raise unless the other arguments (position, expected, found) fit by symbolic sizes."""
    sizes = sizes_of([(expected, actual) for _, expected, actual in others])
    misfits = [(i, e, f) for i, e, f in others if not fits_type(f, e, sizes)]
    problems |= {
        i: f"expected {e!r}, found {_type_text(f)}{_argument_remedy(f, e)}" for i, e, f in misfits
    }
    if not problems:
        return
    # ShapeError only if all dtypes are right: a caller may retry with other shapes
    only_shapes = len(misfits) == len(problems) and all(_same_kind(f, e) for _, e, f in misfits)
    known_sizes = f" with {', '.join(f'{k} = {v}' for k, v in sizes.items())}" if sizes else ""
    raise (ShapeError if only_shapes else DTypeError)(
        f"arguments do not fit the program{known_sizes}\n"
        + "".join(
            f"  {argument_text(i, fn.params[i].name)}: {problems[i]}\n" for i in sorted(problems)
        )
        + "  trace again for other types"
    )


def _type_text(aval: ArrayType) -> str:
    return f"{aval!r}, a Python number" if aval.weak else repr(aval)


def _argument_remedy(actual: ArrayType, expected: ArrayType) -> str:
    """How to turn an argument into one of the expected type, if one call does; else ""."""
    is_cast = actual.dtype != expected.dtype and np.can_cast(
        actual.dtype, expected.dtype, "same_kind"
    )
    if is_cast and actual.ndim == expected.ndim > 0:  # rounds, but drops no parts
        return f": pass x.astype({str(expected.dtype)!r})"
    # a Python number in place of a NumPy scalar, or the reverse
    if actual.shape or expected.shape or actual.weak == expected.weak:
        return ""
    return ": pass x.item()" if expected.weak else f": pass numpy.{expected.dtype}(x)"


def _same_kind(actual: ArrayType, expected: ArrayType) -> bool:
    """Whether two types differ only in their shapes."""
    return actual.dtype == expected.dtype and actual.weak == expected.weak


def sizes_of(pairs: Sequence[tuple[ArrayType, ArrayType]]) -> dict[str, int]:
    """{name: number} for the symbolic sizes in (expected, found) types.

    Solved first from sizes that are a single name, then from sums such as 2*n+1.
    """
    equations = [
        (size.terms, n)
        for expected, actual in pairs
        for size, n in zip(expected.shape, actual.shape, strict=False)
        if type(size) is Size and not size.is_internal
    ]
    sizes: dict[str, int] = {}
    for terms, n in equations:
        match terms:
            case (((name,), 1),):
                # the first occurrence decides; fits() finds contradictions
                sizes.setdefault(name, n)
    for terms, n in equations:
        match terms:
            # the order of Size.terms: the constant is last
            case (((name,), factor),) | (((name,), factor), ((), _)) if type(n) is int:
                constant = dict(terms).get((), 0)
                sizes.setdefault(name, max(0, (n - constant) // factor))
    return sizes


def fits_type(actual: ArrayType, expected: ArrayType, sizes: dict[str, int]) -> bool:
    """Whether ``actual`` equals ``expected`` with these sizes for its names, others being free."""
    if not _same_kind(actual, expected) or actual.ndim != expected.ndim:
        return False
    for n, size in zip(actual.shape, expected.shape, strict=True):
        if type(size) is not Size:
            expected_size = size
        elif size.names <= sizes.keys():
            expected_size = size.evaluate(sizes)
        else:
            continue
        if n != expected_size:
            return False
    return True


def nested_results(fn: Lambda, results: tuple) -> Any:
    """The results, nested as the recorded function returned them."""
    if fn.out_tree is not None:
        return fn.out_tree.unflatten(results)
    return results[0] if len(results) == 1 else results


def nesting_of(fn: Lambda, args: tuple, kwargs: dict) -> Callable[[tuple], Any]:
    """The function from flat results to the result of a call with these arguments.

    It stores what ``fn`` stores in lists, dicts and objects among them.
    """
    if fn.out_tree is None or not fn.out_tree.stores:
        return functools.partial(nested_results, fn)
    containers = LATE_BOUND["containers_of_call"](fn, args, kwargs)
    return lambda results: containers.store(nested_results(fn, results))


def parameters_of(f: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of ``f`` by name, if its signature is known."""
    try:
        return dict(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        return {}


def positional_names(f: Callable[..., Any]) -> list[str]:
    """The names of the positional parameters of ``f``, if its signature is known."""
    # the usual kinds without inspect.signature, which takes as long as a small recording
    if type(f) is FunctionType and "__signature__" not in f.__dict__:
        if "__wrapped__" in f.__dict__:
            return positional_names(f.__dict__["__wrapped__"])
        return list(f.__code__.co_varnames[: f.__code__.co_argcount])
    if type(f) is MethodType:
        return positional_names(f.__func__)[1:]
    if type(f) is functools.partial and not f.keywords:
        return positional_names(f.func)[len(f.args) :]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters_of(f).values() if p.kind in kinds]


def leaf_names(f: Callable[..., Any], args: tuple, kwargs: dict) -> list[str | None]:
    """A name for each leaf: its parameter followed by its path; None if unknown."""
    arguments: Any = (args, kwargs)
    return names_and_tree(positional_names(f), flatten(arguments)[1])[0]


def names_and_tree(names: list[str], spec: optree.PyTreeSpec) -> tuple[list[str | None], Tree]:
    """(a name for each leaf of the arguments, their tree), for positional parameters ``names``."""
    key = *names, spec
    entry = _known_structures.get(key)
    if entry is None:
        entry = _known_structures[key] = _leaf_names(names, spec), Tree(spec)
    return entry


_known_structures = BoundedCache(1 << 10)  # (names of parameters, spec) -> (names, tree)


def _leaf_names(names: list[str], spec: optree.PyTreeSpec) -> list[str | None]:
    """The names of the leaves of arguments, from their paths: ``x``, or ``x_w`` for x["w"]."""
    result: list[str | None] = []
    for kind, place, *rest in spec.paths():
        key = place  # by keyword
        if kind == 0:  # by position
            key = names[place] if place < len(names) else f"arg{place}"
        name = re.sub(r"\W", "_", str(key))
        if rest:
            name = ".".join([name, *[re.sub(r"\W", "_", str(part)) for part in rest]])
        result.append(name if re.fullmatch(r"[A-Za-z_][\w.]*", name) else None)
    return result


@frozen(eq=False)
class StaticLeaf:
    """A static argument, to whose value the program is specialised."""

    value: object


@frozen(eq=False)
class TypedLeaf:
    """An array with a given type, whose sizes may be symbolic."""

    type: ArrayType
    value: object


def mark_static(
    f: Callable[..., Any],
    args: tuple,
    kwargs: dict,
    argnums: int | Sequence[int],
    argnames: str | Sequence[str],
) -> tuple[tuple, dict]:
    """The arguments with the static ones wrapped. Raises TraceError for a missing one."""
    if argnums == () == argnames:
        return args, kwargs
    return LATE_BOUND["with_static"](f, args, kwargs, argnums, argnames)


# classes of most arguments, none of them static
NEVER_STATIC = frozenset([np.ndarray, int, float, complex, np.float64, np.float32, np.int64])
# exactly bool: np.bool_ is an array for NumPy, and becomes a parameter
_STATIC_CLASSES = frozenset(
    [
        *(StaticLeaf, bool, str, bytes, slice, range, frozenset, type(...), ModuleType),
        *(FunctionType, MethodType, BuiltinFunctionType, functools.partial),
        *(np.ufunc, type(np.sum)),
    ]
)
_STATIC_MODULES = ("datetime", "decimal", "fractions")  # of immutable numbers and dates


@functools.lru_cache(256)
def _is_static_class(kind: type) -> bool:
    """Whether all values of a class are static: no operation of an array changes them."""
    return (
        kind in _STATIC_CLASSES
        or issubclass(kind, type | np.dtype)
        or hasattr(kind, "__letir_transformed__")  # a jitted function
        or hasattr(kind, "_member_map_")  # an enumeration
        or kind.__module__ in _STATIC_MODULES
    )


def is_static(leaf: Any) -> bool:
    """Whether an argument is a part of the program, not a parameter: a bool, a string, a function,
    a class, a dtype, a slice, a range and the like.

    >>> is_static(np.sin), is_static("mean"), is_static(np.ones(2)), is_static(1.0)
    (True, True, False, False)
    """
    kind = type(leaf)
    if kind in NEVER_STATIC:
        return False
    if kind is BuiltinFunctionType:  # ``[].append`` changes an object
        return isinstance(leaf.__self__, ModuleType | type | None)
    if kind is MethodType:  # ``rng.normal`` too
        return type(leaf.__func__) is FunctionType
    return _is_static_class(kind)  # type: ignore[arg-type]


def named_inputs(
    f: Callable[..., Any], leaves: list, spec: optree.PyTreeSpec
) -> tuple[list, list, dict[int, Any], Tree]:
    """(names of the inputs, the inputs, static leaves by position, tree) of arguments of ``f``.

    The inputs of a recording are the ``leaves`` of the arguments that are not static.
    """
    names, tree = names_and_tree(positional_names(f), spec)
    if NEVER_STATIC.issuperset(map(type, leaves)) or not any(map(is_static, leaves)):
        return names, leaves, {}, tree
    statics = {i: leaf for i, leaf in enumerate(leaves) if is_static(leaf)}
    in_tree = tuple([(i, Static.from_value(static_value(leaf))) for i, leaf in statics.items()])
    others = [i for i in range(len(leaves)) if i not in statics]
    return [names[i] for i in others], [leaves[i] for i in others], statics, Tree(spec, in_tree)


def static_value(leaf: Any) -> Any:
    """The value of a static argument, which may be marked."""
    return leaf.value if type(leaf) is StaticLeaf else leaf


def unflatten_arguments(spec: optree.PyTreeSpec, leaves: list) -> tuple[tuple, dict]:
    """The positional and keyword arguments with these leaves."""
    arguments: Any = spec.unflatten(leaves)
    return LATE_BOUND["joined_call"](arguments) if Tree(spec).refers else arguments


def unmark_arguments(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments as the user gave them."""
    leaves, spec = flatten((args, kwargs))
    if not any(type(leaf) is StaticLeaf for leaf in leaves):
        return args, kwargs
    return unflatten_arguments(spec, [x.value if type(x) is StaticLeaf else x for x in leaves])
