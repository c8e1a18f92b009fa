"""Why ``jit`` compiles: how a call differs from earlier ones, in the words of the caller, and a
warning for functions that compile again and again.
"""

import os
import re
import sys
import warnings
from typing import Any

import optree

from letir.ast import LATE_BOUND
from letir.ast.pytrees import NAMESPACE
from letir.executor.argument_spec import ArgumentSpec
from letir.executor.calls import executor_name
from letir.tracing.entry import positional_names

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_MANY = 10  # compiles after which a function may be warned of
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def argument_words(f: Any, marked: tuple[tuple, dict]) -> list[str]:
    """A phrase for each leaf of the arguments, as the caller would say it: ``x, the first
    argument``, ``cfg["mode"]``.
    """
    names = positional_names(f)
    given: Any = marked
    found = []
    for kind, place, *rest in optree.tree_paths(given, namespace=NAMESPACE):
        parts = "".join([_part(part) for part in rest])
        if kind == 1:  # by keyword
            found.append(f"{place}{parts}")
            continue
        ordinal = _ORDINALS[place] if place < len(_ORDINALS) else f"{place + 1}th"
        name = names[place] if place < len(names) else None
        if name is None:
            found.append(f"{'part ' + parts + ' of ' if parts else ''}the {ordinal} argument")
        else:
            found.append(f"{name}{parts}" if parts else f"{name}, the {ordinal} argument,")
    return found


def _part(part: Any) -> str:
    """One step of a path as it is written in Python."""
    return f'["{part}"]' if isinstance(part, str) else f"[{part!r}]"


def spec_difference(f: Any, marked: tuple, spec: ArgumentSpec, other: ArgumentSpec) -> str:
    """A readable description of how the spec of these arguments differs from another one."""
    if spec.tree != other.tree or len(spec.leaves) != len(other.leaves):
        return "its arguments nest in another way"
    words = argument_words(f, marked)
    pairs = zip(words, spec.leaves, other.leaves, strict=True)
    return "; ".join([f"{word} is {a}, was {b}" for word, a, b in pairs if a != b]) or "nothing"


def size_words(f: Any, marked: tuple, named: ArgumentSpec, reason: str) -> str:
    """``reason`` with the sizes of a symbolic spec as they are written in Python: x.shape[0]."""
    shapes = [getattr(getattr(leaf, "kind", None), "shape", ()) for leaf in named.leaves]
    for word, shape in zip(argument_words(f, marked), shapes, strict=True):
        for axis, n in enumerate(shape):
            if type(n) is not int:
                size = rf"(?<![\w+*]){re.escape(str(n))}(?![\w+*])"
                reason = re.sub(size, f"{word.partition(',')[0]}.shape[{axis}]", reason)
    return reason


def warn_of_compiles(executor: Any, reason: str, why_not: str) -> None:
    """Warn once if this executor has compiled often, and in most of its calls."""
    compiles, calls = executor.cache.compiles + 1, executor.counters["invocations"]
    if compiles < _MANY or 4 * compiles < 3 * calls or executor.has_warned:
        return
    executor.has_warned = True
    sizes = f"\n  no plan for all sizes: {why_not}" if why_not else ""
    warnings.warn(
        f"{executor_name(executor.f)} was compiled {compiles} times in {calls} calls, "
        f"this time because {reason}{sizes}\n"
        "  make what differs an array that the program computes with, or call the function without "
        "jit;\n  letir.explain(f, ...) tells more",
        RuntimeWarning,
        stacklevel=_frames_of_letir(),
    )


def _frames_of_letir() -> int:
    """The number of innermost frames that belong to letir, as ``stacklevel`` counts them."""
    frame, level = sys._getframe(1), 0
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level + 1


LATE_BOUND["size_words"] = size_words
LATE_BOUND["spec_difference"] = spec_difference
LATE_BOUND["warn_of_compiles"] = warn_of_compiles
