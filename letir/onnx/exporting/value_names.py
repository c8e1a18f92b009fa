"""The names of a model's inputs and outputs: the user's, made unique."""

import re
from collections.abc import Sequence
from typing import Any

from letir.ast.pytrees import leaf_paths
from letir.ast.terms import Lambda, Local
from letir.errors import ExportError


def input_names_of(fn: Lambda, given: Sequence[str] | None) -> list[str]:
    """The names of the inputs: given, or the parameters' own."""
    if given is None:
        return _make_unique([param.name or f"input_{i}" for i, param in enumerate(fn.params)])
    return _checked_names("input_names", given, len(fn.params))


def output_names_of(fn: Lambda, given: Sequence[str] | None, taken: Sequence[str]) -> list[str]:
    """The names of the outputs: given, or the user's names for the results.

    These are keys and fields of the structure that the results are in, or else names of variables.
    """
    count = len(fn.ret.args)
    if given is not None:
        found = _checked_names("output_names", given, count)
        both = sorted(set(found) & set(taken))
        if both:
            raise ExportError(f"export: {', '.join(both)} would name an input and an output")
        return found
    own = [arg.name if type(arg) is Local else None for arg in fn.ret.args]
    stem = ["output"] if count == 1 else [f"output_{i}" for i in range(count)]
    keys = _names_in_structure(fn.out_tree, count)
    return _make_unique([keys[i] or own[i] or stem[i] for i in range(count)], taken)


def _names_in_structure(tree: Any, count: int) -> list[str | None]:
    """For each result its keys and fields, joined by dots; None if its path has only positions."""
    if tree is None or tree.arrays != count:
        return [None] * count
    static, found = dict(tree.statics), []
    for place, path in enumerate(leaf_paths(tree.spec)):
        if place in static:
            continue
        parts = [re.sub(r"\W", "_", str(part)) for part in path]
        if parts and type(path[0]) is int:
            parts[0] = f"output_{parts[0]}"
        found.append(".".join(parts) if any(type(part) is str for part in path) else None)
    return found


def _checked_names(option: str, given: Sequence[str], count: int) -> list[str]:
    found = list(given)
    if len(found) != count or len(set(found)) != count or not all(map(_is_name, found)):
        raise ExportError(
            f"export: {option} are {count} different names, found {found!r}\n"
            "  give one name for each array, in their order"
        )
    return found


def _is_name(name: Any) -> bool:
    return type(name) is str and bool(name)


def _make_unique(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """The names, numbered where they repeat."""
    seen, found = set(taken), []
    for name in names:
        number, new = 1, name
        while new in seen:
            new, number = f"{name}_{number}", number + 1
        seen.add(new)
        found.append(new)
    return found
