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
from letir.plan.instructions import is_kernel, is_pure, numeric_callable
from letir.plan.stencil_steps import stencil_write


def add_other(write: Any, step: Callable, operands: tuple, results: tuple, cleared: tuple) -> None:
    """Append a step whose function stores its own results, see ``instructions.special_step``.

    ``operands``, ``results`` and ``cleared`` are positions of slots.
    """
    form, op = write_form(write, write.bind), write.bind.op
    write.has_arrays |= op.role != "guard"
    targets = [n for n in results if n is not None]
    value = quick_form(write, write.bind) if op.results is None and targets else None
    if value is not None:
        freed_operands = tuple([n for n in cleared if n != targets[0]])
        write.store(value, targets[0], freed_operands)
        write.note(targets[0], freed_operands, makes_array(write.bind))
        return
    if targets and _add_part_write(write, operands, targets[0], cleared):
        return
    if targets and op.results is not None and not op.effect and is_pure(write.bind, np):
        _add_several_results(write, operands, results, cleared)
        return
    if form is not None:
        test, action = form
        freed = [n for n in cleared if n not in targets]
        moved = [f"s{n} = s{operands[0]}" for n in targets if n != operands[0]]
        moved += [write.assign_none(freed)] if freed else []
        if write.misses and not targets and not action:
            write.line(f" if not ({test}): return Miss")
            if moved:
                write.line(f" {'; '.join(moved)}")
            write.forget(cleared)
            return
        write.line(f" if {test}:")
        write.line("  " + ("; ".join([*([action] if action else []), *moved]) or "pass"))
        write.line(" else:")
    _call_other(write, step, operands, results, cleared, " " if form is None else "  ")
    write.memory.record_use(write.bind, operands)
    write.forget((*targets, *cleared))
    write.is_loud = write.is_loud or not is_silent(op)
    if op.update is not None and targets and write.result is not None and write.result.shape:
        _note_own_array(write, targets[0])


def _add_several_results(write: Any, operands: tuple, results: tuple, cleared: tuple) -> None:
    """Append the call of a function with several results; some may be unused."""
    form = lapack_form(write)
    if form is None:
        form = write.call(numeric_callable(write.bind, np), write.bind)
    names = "".join(["_, " if n is None else f"s{n}, " for n in results])
    write.line(f" {names}= {form}")
    freed = [f"s{n}" for n in cleared if n not in results] + ["_"] * (None in results)
    write.memory.record_use(write.bind, operands)
    write.forget((*[n for n in results if n is not None], *cleared))
    if is_kernel(write.bind):  # whose results are new arrays
        for slot, binder in zip(results, write.bind.binders, strict=True):
            if slot is not None and binder.type is not NO_TYPE and binder.type.shape:
                _note_own_array(write, slot)
    if freed:
        write.line(f" {' = '.join(freed)} = None")


def _add_part_write(write: Any, operands: tuple, target: int, cleared: tuple) -> bool:
    """Append a write into part of an array that needs no test; False if there is none.

    The array belongs to the function, or is an argument, which is copied.
    """
    form = stencil_write(write, write.bind)
    parts = part_write_form(write, write.bind) if form is None else None
    if parts is not None:
        form = parts[0], lambda name: f"{name}{parts[1]}"
    if form is None:
        return False
    array, statement = form
    name = array if array == write.slot(0) else "t" if target in operands[1:] else f"s{target}"
    text = statement(name) if name == array else f"{name} = {array}; {statement(name)}"
    if name != f"s{target}":
        text += f"; s{target} = {name}"
    freed = [*[f"s{n}" for n in cleared if n != target], *(["t"] if name == "t" else [])]
    if freed:
        text += f"; {' = '.join(freed)} = None"
    write.line(f" {text}")
    write.memory.record_use(write.bind, operands)
    write.forget((target, *cleared))
    _note_own_array(write, target)
    return True


def _note_own_array(write: Any, slot: int) -> None:
    """Note that ``slot`` holds an array to which nothing else refers."""
    write.facts[slot] = OWNED
    write.memory.add_new(slot)


def _call_other(
    write: Any, step: Callable, operands: tuple, results: tuple, cleared: tuple, indent: str
) -> None:
    """Append a call of a step's function with a list of the slots that it uses."""
    results_of = getattr(step, "results_of", None)
    if results_of is not None and results and None not in results:
        items = ", ".join([f"s{n}" for n in operands])
        clearing = f"; {write.assign_none(cleared)}" if cleared else ""
        write.line(f"{indent}v = [{items}]{clearing}", may_repeat=False)
        names = "".join([f"s{n}, " for n in results])
        text = f"{indent}{names}= {write.constant(results_of)}(v); v = None"
        write.line(text, may_repeat=False)
        return
    sources, stored = list(dict.fromkeys(operands)), [n for n in results if n is not None]
    place = {n: m for m, n in enumerate(sources)}
    targets = iter(range(len(sources), len(sources) + len(stored)))
    slots = (
        tuple([place[n] for n in operands]),
        tuple([None if n is None else next(targets) for n in results]),
        tuple([place[n] for n in cleared]),
    )
    items = ", ".join([*[f"s{n}" for n in sources], *["None"] * len(stored)])
    text = f"{indent}v = [{items}]; {write.assign_none(cleared) + '; ' if cleared else ''}"
    text += f"{write.constant(step)}(v, {', '.join(map(write.constant, slots))})"
    # the step may not be repeated: it may have had an effect, and has cleared the variables
    write.line(text if stored else f"{text}; v = None", may_repeat=False)
    if stored:
        names = "".join([f"s{n}, " for n in stored])
        write.line(f"{indent}{names}= v[{len(sources)}:]; v = None", may_repeat=False)
