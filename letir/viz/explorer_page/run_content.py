"""``run_content``: what the page needs to run a small program, and the values of one run."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast.bodies import bodies_of
from letir.ast.process_state import float_errors
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Bind, Lambda, Local
from letir.errors import LetirError
from letir.eval.evaluator import run_flat
from letir.viz.explorer_page.run_code import CodeWriter, NotShown, array_json
from letir.viz.explorer_page.subject import Subject

_MAX_BINDS = 400
_MAX_ARGUMENTS = 20_000  # elements of all arguments
_MAX_COMPUTED = 3_000_000  # elements of all values
_MAX_STORED = 20_000  # elements of all values that are stored
_MAX_OF_ONE = 2_000  # elements of a value that is stored
_MADE_UP = "The arguments are made up: letir.viz.explorer(f, *args) takes yours."


def run_content(subject: Subject) -> dict[str, Any]:
    """The program as code with its arguments, and the values of a run by ``run_forward``.

    ``values``: for each bind the arrays ``[dtype, shape, elements]`` of its results, or
    None for those that are too large; ``reason``: why there is nothing to run.
    """
    fn = subject.program
    try:
        _expect_small(fn)
        args = _program_arguments(subject)
        writer = CodeWriter()
        code = writer.code(fn)
    except NotShown as why:
        return {"reason": str(why)}
    content = {
        "code": code,
        "parts": writer.parts,
        "args": [array_json(arg) for arg in args],
        "note": "" if subject.args is not None else _MADE_UP,
        "reason": "",
    }
    return {**content, **_values_of_run(fn, args, subject.args is not None)}


def _expect_small(fn: Lambda) -> None:
    """Raise NotShown for a program that is too large to run in a page."""
    if len(fn) > _MAX_BINDS:
        raise NotShown(f"The program has {len(fn):,} binds; up to {_MAX_BINDS} run in the page.")
    locals_ = [*fn.params, *(binder for bind in fn.binds for binder in bind.binders)]
    if not all(has_static_shape(local.type) for local in locals_):
        raise NotShown("A type is not known, or a size has only a name.")
    count = sum([local.type.size for local in fn.params])
    if count > _MAX_ARGUMENTS:
        raise NotShown(f"The arguments have {count:,} elements, more than {_MAX_ARGUMENTS:,}.")
    count = sum([local.type.size for local in locals_])
    if count > _MAX_COMPUTED:
        raise NotShown(f"The values have {count:,} elements, more than {_MAX_COMPUTED:,}.")


def _program_arguments(subject: Subject) -> list[np.ndarray]:
    """The arguments of the whole program: given or made up, and cotangents of one."""
    rng = np.random.default_rng(0)
    arguments = dict(zip(subject.forward_program.params, subject.args or (), strict=False))
    result = []
    for param in subject.program.params:
        aval = param.type
        if param in arguments:
            value = _as_array(arguments[param], aval.dtype)
        elif param in subject.cotangents:
            value = np.ones(aval.shape, aval.dtype)
        else:
            value = _random_argument(param, rng)
        result.append(value)
    return result


def _as_array(value: Any, dtype: np.dtype) -> np.ndarray:
    """An argument as an array. Raises NotShown for a generator, and for an array of a device."""
    if not isinstance(value, np.ndarray | np.generic | bool | int | float | complex):
        raise NotShown(f"An argument is a {type(value).__name__}, not an array of numbers.")
    return np.asarray(value, dtype)


def _random_argument(param: Local, rng: np.random.Generator) -> np.ndarray:
    """An argument of the type of a parameter."""
    dtype, shape = param.type.dtype, param.type.shape
    if dtype.kind in "fc":
        return rng.normal(size=shape).round(2).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 2, shape).astype(dtype)
    raise NotShown(f"An argument of dtype {dtype} cannot be made up.")


def _values_of_run(fn: Lambda, args: Sequence[np.ndarray], is_requested: bool) -> dict[str, Any]:
    """The values of a run, as far as they are small.

    A program whose arguments are made up may come from a stranger, so it runs only if it is
    certain to end.
    """
    effects = [bind for bind in fn.binds if bind.op.effect and bind.op.role != "guard"]
    if effects:
        return {"values": None, "why": f"Not run here: {effects[0].op.name} has an effect."}
    if not is_requested and any(bodies_of(bind) for bind in fn.binds):
        return {"values": None, "why": "Not run here: the arguments are made up."}
    places = {id(bind): i for i, bind in enumerate(fn.binds)}  # parts of composites run too
    stored: list[list[list] | None] = [None] * len(fn)
    room = _MAX_STORED

    def note(bind: Bind, results: tuple) -> None:
        nonlocal room
        if id(bind) not in places:
            return
        arrays = [np.asarray(result) for result in results]
        count = sum([array.size for array in arrays])
        is_stored = count <= min(room, _MAX_OF_ONE)
        if is_stored:
            room -= count
            stored[places[id(bind)]] = [array_json(array) for array in arrays]

    try:
        with float_errors(all="ignore"):
            run_flat(fn, list(args), note)
    except (LetirError, ArithmeticError, ValueError, LookupError) as error:
        why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        return {"values": None, "why": why}
    return {"values": stored, "why": ""}
