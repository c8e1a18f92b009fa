"""``CodeWriter``: programs as JSON that the interpreter of the page runs.

A code is ``{"params": types, "steps": steps, "ret": operands}``. Its locals are numbered: first the
parameters, then the results of each step. A step is ``[operation, operands, attributes, types of
results, parts]``. An operand is the number of a local, or ``[kind, value]`` of a constant. A type
is ``[dtype, shape, 1 for a Python number]`` or None. ``parts`` is the position of the code that
computes a composite, or -1.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field

from letir.ast.attrs import Here
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Arg, Bind, Lambda, Local
from letir.ast.types import ArrayType
from letir.errors import LetirError
from letir.ops.control_flow.fori_as_while import is_weak
from letir.ops.define.records import decomposition

_MAX_ELEMENTS = 20_000  # of an array among the attributes


class NotShown(Exception):
    """A part of a program that cannot be written; the message says which."""


@define(eq=False)
class CodeWriter:
    """Writes programs, and collects the parts of composites, each once."""

    parts: list[dict] = field(factory=list)
    _places: dict[Any, int] = field(factory=dict)

    def code(self, fn: Lambda) -> dict[str, Any]:
        """The code of a program. Raises NotShown for a size that has only a name."""
        numbers: dict[Local, int] = {}
        for param in fn.params:
            numbers[param] = len(numbers)
        steps = []
        for bind in fn.binds:
            operands = [_operand_json(arg, numbers) for arg in bind.args]
            attrs = {name: self.attr(value) for name, value in bind.attrs.items()}
            for binder in bind.binders:
                numbers[binder] = len(numbers)
            types = [_type_json(binder) for binder in bind.binders]
            steps.append([bind.op.name, operands, attrs, types, self.parts_of(bind)])
        ret = [_operand_json(arg, numbers) for arg in fn.ret.args]
        return {"params": [_type_json(param) for param in fn.params], "steps": steps, "ret": ret}

    def parts_of(self, bind: Bind) -> int:
        """The position of the parts of a composite; -1 for any other operation."""
        operands = [arg for arg in bind.args if type(arg) is Local or arg.value is not None]
        is_known = all(isinstance(arg.type, ArrayType) for arg in operands)
        if bind.op.decompose is None or not is_known:
            return -1
        # an operand None has the type None, and no parameter
        avals = tuple([arg.type if isinstance(arg.type, ArrayType) else None for arg in bind.args])
        key = (bind.op, avals, bind.attrs)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.parts)
            self.parts.append({})
            try:
                parts = decomposition(bind.op.decompose, avals, dict(bind.attrs))
                self.parts[place] = self.code(parts)
            except (LetirError, NotShown):
                self._places[key] = -1
        return self._places[key]

    def attr(self, value: Any) -> Any:
        """An attribute as JSON. A value that JSON lacks is an object with one key."""
        kind = type(value)
        if kind in (bool, int, str, type(None)):
            return value
        if isinstance(value, float | np.floating):
            return _number_json(float(value))
        if kind is tuple:
            return [self.attr(item) for item in value]
        if kind is Lambda:
            return {"code": self.code(value)}
        if kind is slice:
            return {"slice": [self.attr(n) for n in (value.start, value.stop, value.step)]}
        if kind is Here:
            return {"here": 1}
        if value is Ellipsis:
            return {"ellipsis": 1}
        if isinstance(value, np.dtype):
            return {"dtype": value.name}
        if isinstance(value, np.ndarray) and value.size <= _MAX_ELEMENTS:
            return {"array": array_json(value)}
        if isinstance(value, np.generic):
            return {"array": array_json(np.asarray(value))}
        return {"other": kind.__name__}


def _operand_json(arg: Arg, numbers: dict[Local, int]) -> Any:
    """An operand: the number of a local, or the kind and the value of a constant."""
    if type(arg) is Local:
        return numbers[arg]
    value = arg.value
    if type(value) in (bool, int):
        return [type(value).__name__, value]
    if type(value) is float:
        return ["float", _number_json(value)]
    return ["none", None] if value is None else [type(value).__name__, None]


def _type_json(local: Local) -> list | None:
    """The dtype and the shape of a local, and 1 for a Python number; None if there is none."""
    aval = local.type
    if not isinstance(aval, ArrayType):
        return None
    if not is_static_shape(aval.shape):
        raise NotShown(f"The size {aval.shape} has only a name.")
    return [aval.dtype.name, list(aval.shape), int(is_weak(aval))]


def _number_json(value: float) -> float | str:
    """A number as JSON has it: nan and inf are texts."""
    return value if math.isfinite(value) else str(value)


def array_json(value: np.ndarray) -> list:
    """``[dtype, shape, elements]`` in C order; complex elements are texts."""
    flat: Sequence = value.reshape(-1).tolist()
    if value.dtype.kind == "f":
        flat = [_number_json(float(x)) for x in flat]
    elif value.dtype.kind not in "biu":
        flat = [str(x) for x in flat]
    return [value.dtype.name, list(value.shape), flat]
