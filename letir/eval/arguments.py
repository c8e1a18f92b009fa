"""What a program is called with: arguments flattened and checked against its parameters, results nested again [B7]."""

from letir.ast.terms import Lambda, Local
from letir.ast.types import ArrayType, Size
from letir.errors import DTypeError, ShapeError
from letir.eval.arrays import describe, type_of


def flat_arguments(fn: Lambda, args: tuple, kwargs: dict) -> list:
    """The array arguments in the order of the parameters. Raises DTypeError if they nest differently."""
    if fn.in_tree is not None:
        return fn.in_tree.leaves_of((args, kwargs), "calling the program")
    if kwargs:
        raise DTypeError(f"the program has no keyword arguments, found {', '.join(kwargs)}")
    return list(args)


def checked_arguments(fn: Lambda, leaves: list, type_of=type_of) -> list:
    """``leaves`` if they have the types of the parameters; a Python int becomes a float where one is expected.

    Raises ShapeError or DTypeError that lists every argument that differs, and how.
    """
    if len(leaves) != len(fn.params):
        raise ShapeError(f"expected {len(fn.params)} arrays as arguments, found {len(leaves)}")
    wrong, shapes_only, sizes = [], True, {}
    for i, (param, leaf) in enumerate(zip(fn.params, leaves, strict=True)):
        if param.type is None:
            continue
        if type(leaf) is int and param.type.weak and param.type.dtype.kind in "fc":
            leaf = leaves[i] = float(leaf)
        found = type_of(leaf)
        if found is param.type or fits(found, param.type, sizes):
            continue
        shapes_only = shapes_only and (found.dtype, found.weak) == (param.type.dtype, param.type.weak)
        wrong.append(f"  {_name(i, param)}: expected {param.type!r}, found {_found(found)}")
    if wrong:
        error = ShapeError if shapes_only else DTypeError
        known = f" with {', '.join(f'{k} = {v}' for k, v in sizes.items())}" if sizes else ""
        raise error("\n".join([f"arguments do not fit the program{known}", *wrong, "  trace again for other types"]))
    return leaves


def _name(i: int, param: Local) -> str:
    return f"argument {i} ({param.name})" if param.name else f"argument {i}"


def _found(kind: ArrayType) -> str:
    return f"{kind!r}, a Python number" if kind.weak else repr(kind)


def fits(found: ArrayType, expected: ArrayType, sizes: dict[str, int]) -> bool:
    """Whether an array's type is an instance of ``expected``; names are bound in ``sizes`` as they are met [B10]."""
    if (found.dtype, found.weak, found.ndim) != (expected.dtype, expected.weak, expected.ndim):
        return False
    for n, size in zip(found.shape, expected.shape, strict=True):
        if type(size) is not Size:
            if n != size:
                return False
            continue
        (name, *more) = sorted(size.names)
        if size == Size.named(name) and not more:
            if sizes.setdefault(name, n) != n:
                return False
        elif all(name in sizes for name in size.names) and size.evaluate(sizes) != n:
            return False
    return True


def nested_results(fn: Lambda, results: tuple):
    """The results as the recorded function returned them."""
    if fn.out_tree is not None:
        return fn.out_tree.unflatten(results)
    return results[0] if len(results) == 1 else results


def describe_arguments(leaves: list) -> str:
    """The types of some values, for messages."""
    return ", ".join(map(describe, leaves))
