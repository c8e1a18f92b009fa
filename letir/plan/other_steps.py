"""``add_other``: writes the text of a step that stores its results itself, such as a write into an
array. See ``letir.plan.step_writer`` for the ``write`` of these functions.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.terms import NO_TYPE
from letir.eval.float_warnings import is_silent
from letir.ops.as_numpy.quick_forms import part_write_form, quick_form, write_form
from letir.ops.as_numpy.quick_linalg import lapack_form
from letir.ops.as_numpy.quick_numbers import OWNED, makes_array
from letir.plan.instructions import is_pure, kernel_ufunc, numeric_callable


def add_other(write: Any, f: Callable, i: tuple, k: tuple, c: tuple) -> None:
    """Append a step whose function stores its own results."""
    form, op = write_form(write, write.bind), write.bind.op
    write.has_arrays |= op.role != "guard"
    targets = [n for n in k if n is not None]
    value = quick_form(write, write.bind) if op.results is None and targets else None
    if value is not None:
        cleared = tuple([n for n in c if n != targets[0]])
        write.store(value, targets[0], cleared)
        write.note(targets[0], cleared, makes_array(write.bind))
        return
    if targets and _add_part_write(write, i, targets[0], c):
        return
    if targets and op.results is not None and not op.effect and is_pure(write.bind, np):
        _add_several_results(write, i, k, c)
        return
    if form is not None:
        test, action = form
        freed = [n for n in c if n not in targets]
        moved = [f"s{n} = s{i[0]}" for n in targets if n != i[0]]
        moved += [write.assign_none(freed)] if freed else []
        if write.misses and not targets and not action:
            write.line(f" if not ({test}): return Miss")
            if moved:
                write.line(f" {'; '.join(moved)}")
            write.forget(c)
            return
        write.line(f" if {test}:")
        write.line("  " + ("; ".join([*([action] if action else []), *moved]) or "pass"))
        write.line(" else:")
    _call_other(write, f, i, k, c, " " if form is None else "  ")
    write.memory.record_use(write.bind, i)
    write.forget((*targets, *c))
    write.is_loud = write.is_loud or not is_silent(op)
    if op.update is not None and targets and write.result is not None and write.result.shape:
        _note_own_array(write, targets[0])


def _add_several_results(write: Any, i: tuple, k: tuple, c: tuple) -> None:
    """Append the call of a function with several results; some may be unused."""
    form = lapack_form(write)
    if form is None:
        form = write.call(numeric_callable(write.bind, np), write.bind)
    results = "".join(["_, " if n is None else f"s{n}, " for n in k])
    write.line(f" {results}= {form}")
    cleared = [f"s{n}" for n in c if n not in k] + ["_"] * (None in k)
    write.memory.record_use(write.bind, i)
    write.forget((*[n for n in k if n is not None], *c))
    if kernel_ufunc(write.bind) is not None:  # whose results are new arrays
        for slot, binder in zip(k, write.bind.binders, strict=True):
            if slot is not None and binder.type is not NO_TYPE and binder.type.shape:
                _note_own_array(write, slot)
    if cleared:
        write.line(f" {' = '.join(cleared)} = None")


def _add_part_write(write: Any, i: tuple, k: int, c: tuple) -> bool:
    """Append a write into part of an array that needs no test; False if there is none.

    The array belongs to the function, or is an argument, which is copied.
    """
    form = part_write_form(write, write.bind)
    if form is None:
        return False
    array, statement = form
    name = array if array == write.slot(0) else "t" if k in i[1:] else f"s{k}"
    text = f"{name}{statement}" if name == array else f"{name} = {array}; {name}{statement}"
    if name != f"s{k}":
        text += f"; s{k} = {name}"
    cleared = [*[f"s{n}" for n in c if n != k], *(["t"] if name == "t" else [])]
    if cleared:
        text += f"; {' = '.join(cleared)} = None"
    write.line(f" {text}")
    write.memory.record_use(write.bind, i)
    write.forget((k, *c))
    _note_own_array(write, k)
    return True


def _note_own_array(write: Any, k: int) -> None:
    """Note that slot ``k`` holds an array to which nothing else refers."""
    write.facts[k] = OWNED
    write.memory.add_new(k)


def _call_other(write: Any, f: Callable, i: tuple, k: tuple, c: tuple, indent: str) -> None:
    """Append a call of a step's function with a list of the slots that it uses."""
    results_of = getattr(f, "results_of", None)
    if results_of is not None and k and None not in k:
        items = ", ".join([f"s{n}" for n in i])
        clearing = f"; {write.assign_none(c)}" if c else ""
        write.line(f"{indent}v = [{items}]{clearing}", may_repeat=False)
        results = "".join([f"s{n}, " for n in k])
        text = f"{indent}{results}= {write.constant(results_of)}(v); v = None"
        write.line(text, may_repeat=False)
        return
    sources, stored = list(dict.fromkeys(i)), [n for n in k if n is not None]
    place = {n: m for m, n in enumerate(sources)}
    targets = iter(range(len(sources), len(sources) + len(stored)))
    slots = (
        tuple([place[n] for n in i]),
        tuple([None if n is None else next(targets) for n in k]),
        tuple([place[n] for n in c]),
    )
    items = ", ".join([*[f"s{n}" for n in sources], *["None"] * len(stored)])
    text = f"{indent}v = [{items}]; {write.assign_none(c) + '; ' if c else ''}"
    text += f"{write.constant(f)}(v, {', '.join(map(write.constant, slots))})"
    # the step may not be repeated: it may have had an effect, and has cleared the variables
    write.line(text if stored else f"{text}; v = None", may_repeat=False)
    if stored:
        results = "".join([f"s{n}, " for n in stored])
        write.line(f"{indent}{results}= v[{len(sources)}:]; v = None", may_repeat=False)
