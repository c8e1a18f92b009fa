"""The names of a model's inputs and outputs: the user's, made unique."""

import re
from collections.abc import Sequence
from typing import Any

from letir.ad.gradient_program import Gradient
from letir.ast.pytrees import leaf_paths
from letir.ast.terms import Lambda, Local
from letir.errors import ExportError


def input_names_of(fn: Lambda, option: Sequence[str] | None) -> list[str]:
    """The names of the inputs: given, or the parameters' own."""
    if option is None:
        return _make_unique([param.name or f"input_{i}" for i, param in enumerate(fn.params)])
    return _checked_names("input_names", option, len(fn.params))


def output_names_of(
    fn: Lambda, option: Sequence[str] | None, input_names: Sequence[str]
) -> list[str]:
    """The names of the outputs: given, or the user's names for the results.

    These are keys and fields of the structure that the results are in, or else names of variables.
    """
    if option is None:
        return _result_names(fn.ret.args, fn.out_tree, input_names)
    result = _checked_names("output_names", option, len(fn.ret.args))
    both = sorted(set(result) & set(input_names))
    if both:
        raise ExportError(
            f"export: {', '.join(both)} would name an input and an output\n"
            "  choose other output_names"
        )
    return result


def names_of_joined(gradient: Gradient, joined: Lambda) -> tuple[list[str], list[str]]:
    """(inputs, outputs) of the one program of both passes, as ``export_vjp`` names them in two."""
    f, real = gradient.f, gradient.f_real_outputs
    own = input_names_of(f, None)
    results = _result_names(f.ret.args[:real], gradient.out_tree, own)
    place = dict(zip(f.params, own, strict=True))
    cts = iter([f"ct_{results[i]}" for i in gradient.df_input_vjps if i < real])
    inputs = _make_unique([place[p] if p in place else next(cts) for p in joined.params])
    slopes = [f"ct_{own[i]}" for i in gradient.df_output_vjps]
    return inputs, _make_unique([*results, *slopes], inputs)


def _result_names(results: Sequence[Any], tree: Any, reserved: Sequence[str]) -> list[str]:
    """The user's names for results in a structure, or else numbers."""
    count = len(results)
    own = [arg.name if type(arg) is Local else None for arg in results]
    stem = ["output"] if count == 1 else [f"output_{i}" for i in range(count)]
    keys = _names_in_structure(tree, count)
    return _make_unique([keys[i] or own[i] or stem[i] for i in range(count)], reserved)


def _names_in_structure(tree: Any, count: int) -> list[str | None]:
    """For each result its keys and fields, joined by dots; None if its path has only positions."""
    if tree is None or tree.arrays != count:
        return [None] * count
    static, result = dict(tree.statics), []
    for place, path in enumerate(leaf_paths(tree.spec)):
        if place in static:
            continue
        parts = [re.sub(r"\W", "_", str(part)) for part in path]
        if parts and type(path[0]) is int:
            parts[0] = f"output_{parts[0]}"
        result.append(".".join(parts) if any(type(part) is str for part in path) else None)
    return result


def _checked_names(option: str, chosen: Sequence[str], count: int) -> list[str]:
    result = list(chosen)
    if len(result) != count or len(set(result)) != count or not all(map(_is_name, result)):
        raise ExportError(
            f"export: {option} must be {count} different names, found {result!r}\n"
            "  give one name for each array, in their order"
        )
    return result


def _is_name(name: Any) -> bool:
    return type(name) is str and bool(name)


def _make_unique(names: Sequence[str], reserved: Sequence[str] = ()) -> list[str]:
    """The names, numbered where they repeat."""
    used, result = set(reserved), []
    for name in names:
        number, new = 1, name
        while new in used:
            new, number = f"{name}_{number}", number + 1
        used.add(new)
        result.append(new)
    return result
