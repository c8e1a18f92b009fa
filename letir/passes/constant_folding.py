"""``constant_propagation``: computes binds that do not depend on arguments at optimisation time."""

from collections.abc import Sequence
from functools import cache, partial

import numpy as np
from attrs import define, field

from letir.ast import entry_point
from letir.ast.attrs import Attrs
from letir.ast.bodies import map_bodies
from letir.ast.primitive import PRIMITIVES, Primitive, results_tuple
from letir.ast.process_state import float_errors, paused_gc
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.ast.types import PYTHON_NUMBERS, ArrayType
from letir.eval.array_modules import type_of
from letir.passes.memory.aliases import (
    locals_viewed_by_results,
    result_sharing_locals,
    updated_locals,
)

_LIMIT = 1 << 16  # bytes of one result
_TOTAL = 1 << 26  # bytes of all results


@entry_point
@paused_gc()
def constant_propagation(fn: Lambda, *, limit: int = _LIMIT) -> Lambda:
    """Compute binds whose operands are all constants, also in bodies.

    After a guard that compares a Python integer with a constant, the integer is that constant.

    Not folded: binds that raise or warn (they do so when the program runs), operands or results of
    more than ``limit`` bytes, values consumed by updates, random draws, effects, user-defined
    operations, operations with bodies, and arrays whose memory a result shares as a view or that
    are two results. A result keeps its bits, memory order and kind: NumPy scalars stay scalars
    [semantics.md F4]. Linear in the number of binds.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0 { %1 = exp(0.0); %2 = add(%1, 2.0); %3 = mul(%0, %2); return %3 }")
    >>> from letir.ast.checker import retype
    >>> f = retype(f, ArrayType(float))
    >>> from letir.passes import dead_code
    >>> print(dead_code(constant_propagation(f)).listing(), end="")
    %1 = constant float64(3.0)
    %2 = mul %0, %1
    return %2
    """
    return map_bodies(fn, partial(_fold_constants, limit=limit))


def _fold_constants(fn: Lambda, limit: int) -> Lambda:
    """``constant_propagation`` of the binds of ``fn`` itself."""
    return _Folding(fn, limit).run()


@define(eq=False)
class _Folding:
    """The binds that remain, and the values of those that are folded.

    ``room``: the bytes that may still be folded, since constants stay alive all together.
    ``guarded``: the Python integers whose values the guards so far have checked.
    """

    fn: Lambda
    limit: int
    room: int = _TOTAL
    values: dict[Local, object] = field(factory=dict)
    kept: list[Bind] = field(factory=list)
    numbers: dict[Local, Const] = field(factory=dict)
    guarded: dict[Local, Const] = field(factory=dict)
    updated: set[Local] | None = None
    shared_with_results: set[Local] = field(factory=set)
    tied: set[Local] = field(factory=set)

    def run(self) -> Lambda:
        """The program; ``fn`` itself if nothing can be computed."""
        values, keep, changed = self.values, self.kept.append, False
        for original in self.fn.binds:
            bind = original.substitute(self.guarded) if self.guarded else original
            changed = changed or bind is not original
            if bind.op.role == "constant":
                values[bind.binders[0]] = bind.attrs["value"]
            elif bind.op.role == "guard":
                if self.is_certain(bind):
                    changed = True
                    continue
            elif _is_all_known(bind.args, values) and is_foldable(bind.op) and self.fold(bind):
                changed = True
                continue
            keep(bind)
        return _with_numbers(self.fn, self.kept, self.numbers) if changed else self.fn

    def is_certain(self, bind: Bind) -> bool:
        """Whether a guard always holds. Otherwise note the value that it checks of a Python
        integer.
        """
        (arg,), value = bind.args, bind.attrs["value"]
        if type(value) is not int:
            return False
        if type(arg) is Local and _is_integer(arg.type):
            if arg in self.numbers:
                return self.numbers[arg].value == value
            self.guarded[arg] = Const(value)
        return type(arg) is Const and type(arg.value) is int and arg.value == value

    def fold(self, bind: Bind) -> bool:
        """Whether ``bind`` was folded into constants."""
        values = _evaluate_bind(bind, self.values, min(self.limit, self.room))
        if values is None:
            return False
        self.values.update(zip(bind.binders, values, strict=True))
        self.room -= sum([getattr(value, "nbytes", 0) for value in values])
        if self.updated is None:
            self.updated, self.shared_with_results = (
                updated_locals(self.fn),
                result_sharing_locals(self.fn),
            )
            self.tied = locals_viewed_by_results(self.fn)
        # an update, or the caller, would have to copy a constant, but not a new array
        if not self.updated.isdisjoint(bind.binders):
            return False
        if not bind.args and not self.shared_with_results.isdisjoint(bind.binders):
            return False
        pairs = zip(bind.binders, values, strict=True)
        if any(binder in self.tied and type(value) is np.ndarray for binder, value in pairs):
            return False
        for binder, value in zip(bind.binders, values, strict=True):
            if type(value) in PYTHON_NUMBERS:
                self.numbers[binder] = Const(value)
            else:
                self.kept.append(_constant_bind(binder, value, bind))
        return True


def _is_integer(aval: ArrayType | None) -> bool:
    """Whether values of this type are Python integers."""
    return type(aval) is ArrayType and aval.weak and aval.dtype.kind == "i" and not aval.shape


def _is_all_known(args: Sequence[Arg], values: dict) -> bool:
    """Whether all operands are constants."""
    for arg in args:  # noqa: SIM110  a generator would be slower, and this runs for every bind
        if type(arg) is Local and arg not in values:
            return False
    return True


@cache
def is_foldable(op: Primitive) -> bool:
    """Whether an operation may be computed at optimisation time."""
    if op.effect or op.random or op.holds_lambdas or op.is_user_defined:
        return False
    is_ufunc = op.elementwise and any(isinstance(f, np.ufunc) for f in op.numpy)
    # np.errstate is local to a thread, but Python's warning filters are shared by all threads
    return is_ufunc or op.only_float_warnings


def _evaluate_bind(bind: Bind, values: dict, limit: int) -> tuple | None:
    """The results as constants; None if the bind must not be folded."""
    if not all(_fits_limit(binder.type, limit) for binder in bind.binders):
        return None
    operands = [values[arg] if type(arg) is Local else arg.value for arg in bind.args]
    if any(getattr(x, "nbytes", 0) > limit for x in operands) or _loses_parts(bind):
        return None
    if bind.op.needs_elements and any(not getattr(x, "size", 1) for x in operands):
        return None
    try:
        with float_errors(all="raise"):  # operations that warn must warn when the program runs
            out = bind.op.impl(np, *operands, **bind.attrs)
    except Exception:
        return None
    results = results_tuple(bind.op, out)
    if not all(_may_be_constant(r, b.type) for r, b in zip(results, bind.binders, strict=True)):
        return None
    return tuple([_freeze_result(result) for result in results])


def _loses_parts(bind: Bind) -> bool:
    """Whether complex operands may become real numbers, for which NumPy warns."""
    kinds = [arg.type.dtype.kind for arg in bind.args if type(arg.type) is ArrayType]
    return "c" in kinds and bind.op.casts_operands


def _fits_limit(aval: ArrayType | None, limit: int) -> bool:
    """Whether values of this type have a known size of at most ``limit`` bytes."""
    if not has_static_shape(aval):
        return False
    return aval.size * aval.dtype.itemsize <= limit


def _may_be_constant(result, aval: ArrayType) -> bool:
    """Whether a constant can replace a result: it has the declared type, and C or Fortran order,
    which a copy preserves.
    """
    if type(result) in PYTHON_NUMBERS:
        return aval.weak and type_of(result) is aval
    if type(result) is not np.ndarray and not isinstance(result, np.generic):
        return False
    is_compact = result.flags.c_contiguous or result.flags.f_contiguous
    return is_compact and type_of(result) is aval


def _freeze_result(result):
    """A read-only copy in the same memory order; scalars and numbers unchanged."""
    if type(result) is not np.ndarray:
        return result
    frozen = np.array(result, order="K", copy=True)
    frozen.flags.writeable = False
    return frozen


def _constant_bind(binder: Local, value, bind: Bind) -> Bind:
    """The ``constant`` bind that replaces ``bind``."""
    return Bind((binder,), PRIMITIVES["constant"], (), Attrs(value=value), bind.source)


def _with_numbers(fn: Lambda, binds: list[Bind], names: dict[Local, Const]) -> Lambda:
    """``fn`` with other binds, and numbers substituted for some locals."""
    if not names:
        return fn.with_binds(binds)
    binds = [bind.substitute(names) for bind in binds]
    return fn.replace(binds=binds, ret=fn.ret.substitute(names))
