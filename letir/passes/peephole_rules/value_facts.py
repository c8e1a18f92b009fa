"""``ValueFacts``: facts about values besides their types: the bind that makes them, the values that
share their memory, and their memory order.

A pass that replaces one value by another must not make a result share memory with an argument, a
constant or another result where NumPy's result does not [semantics.md C4], nor change the memory
order, on which the rounding of later sums depends, nor give an array where NumPy gives a scalar.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from attrs import define, field

from letir.ast.primitive import Primitive
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import broadcast_to, constant, full, ones, zeros
from letir.ops.shape.unit_axes_and_flip import expand_dims

# all elements may be the same known number; by name, so that their files are not loaded
_UNIFORM = frozenset(
    ("broadcast_to", "constant", "expand_dims", "full", "ones", "reshape", "zeros")
)
_MAX_VIEWS = 8  # nested views that are followed
_MAX_OPERANDS = 64  # binds that are visited to find a memory order


@cache
def _is_ufunc(op: Primitive) -> bool:
    """Whether a NumPy ufunc computes the operation, with one result."""
    return op.elementwise and op.reusable and any(isinstance(f, np.ufunc) for f in op.numpy)


@cache
def _is_new(op: Primitive) -> bool:
    """Whether the result of an operation is always new compact memory."""
    return op.compact is not None or _is_ufunc(op)


def _is_view(op: Primitive) -> bool:
    """Whether the result of an operation is always a view of its first operand."""
    return op.memory == "view" and op.views is None and op.results is None


def _is_new_object(op: Primitive) -> bool:
    """Whether the result of an operation is always another object than its operands."""
    return _is_new(op) or (_is_view(op) and not op.may_return_operand)


def _escaping_locals(fn: Lambda) -> set[Local]:
    """The locals with which a result may share memory."""
    return _leading_to_results(fn, _is_new)


def _returned_objects(fn: Lambda) -> set[Local]:
    """The locals that may be a result as the same object."""
    return _leading_to_results(fn, _is_new_object)


def _leading_to_results(fn: Lambda, ends: Callable[[Primitive], bool]) -> set[Local]:
    """The locals from which a result is computed, without passing a bind whose operation
    ``ends``.
    """
    result = set(fn.ret.locals())
    for bind in reversed(fn.binds):
        if not result.isdisjoint(bind.binders) and not ends(bind.op):
            result.update(bind.locals())
    return result


@define(eq=False)
class ValueFacts:
    """The facts known about values while a pass rewrites ``fn`` bind by bind.

    ``producers``: the binds so far, by their binders. ``sizes``: shapes available as values.
    """

    fn: Lambda
    producers: dict[Arg, Bind] = field(factory=dict)
    current: Bind | None = None  # the current bind of ``fn``, in its original form
    contiguous: dict[Local, bool] = field(factory=dict)
    sizes: dict[tuple, Local] = field(factory=dict)
    sources: dict[Local, Bind | None] = field(factory=dict)
    positions: dict[Local, int] = field(factory=dict)
    changes_copies: bool | None = None
    shared_with_results: set[Local] | None = None
    returned: set[Local] | None = None

    def note(self, bind: Bind) -> None:
        """Advance to the next bind."""
        for binder in bind.binders:
            self.producers[binder] = bind

    def forget(self) -> None:
        """Forget all binds so far, after arguments have changed."""
        self.producers.clear()
        self.sources.clear()
        self.sizes.clear()

    def is_c_contiguous(self, arg: Arg) -> bool:
        """Whether a value is known to be C-contiguous."""
        if type(arg) is Const:
            return True
        if arg.type is None:
            return False
        if len(arg.type.shape) < 2:  # new memory is compact, and a reshape of it to a row
            bind = self.producers.get(arg)
            viewed_op = (
                self.op_of(bind.args[0]) if bind is not None and bind.op is reshape else None
            )
            return bind is not None and _is_new(viewed_op or bind.op)
        result = self.contiguous.get(arg)
        if result is None:
            result = self.contiguous[arg] = self.comes_from_c_contiguous(arg)
        return result

    def comes_from_c_contiguous(self, local: Local) -> bool:
        """Whether all values from which an array is made are C-contiguous, where that matters."""
        visited: set[Local] = set()
        pending = [local]
        while pending:
            x = pending.pop()
            if x in visited or self.contiguous.get(x):
                continue
            if len(visited) == _MAX_OPERANDS or x in self.contiguous:
                return False
            visited.add(x)
            above = self.operands_that_decide(self.producers.get(x))
            if above is None:
                return False
            pending += above
        self.contiguous.update(dict.fromkeys(visited, True))
        return True

    def operands_that_decide(self, bind: Bind | None) -> list[Local] | None:
        """The operands that must be C-contiguous so that the result is; None if that does not
        suffice.
        """
        if bind is None:
            return None
        op = bind.op
        # a stack of products has the memory order of the operands' stacks, each matrix in C order
        is_matrix = op.name == "matmul" and len(bind.binders[0].type.shape) == 2
        if op.order == "C" or is_matrix:
            return []
        if op.update is not None:  # in the memory order of its first operand
            source = self.source_of(bind.binders[0])
            return None if source is None else [source.binders[0]]
        if op is constant:
            return [] if bind.attrs["value"].flags.c_contiguous else None
        if op.order == "first" and bind.attrs.get("order", "C") in "CK":
            flat = [x for x in bind.locals() if x.type is None or len(x.type.shape) < 2]
            return list(bind.locals()) if all(map(self.is_c_contiguous, flat)) else None
        if op.order == "all" and _is_new(op):
            # the memory order of an operand with one axis does not matter
            return [x for x in bind.locals() if x.type is None or len(x.type.shape) > 1]
        return None

    def is_new(self, arg: Arg) -> bool:
        """Whether a value is known to share memory with no other one."""
        op = self.op_of(arg)
        return op is not None and _is_new(op)

    def has_order_of_copy(self, arg: Arg) -> bool:
        """Whether results have the same memory order for a value as for a copy of it.

        Not if it may be a view with repeated elements.
        """
        if type(arg) is Const or (arg.type is not None and len(arg.type.shape) < 2):
            return True
        bind = self.producers.get(arg)
        for _ in range(_MAX_VIEWS):
            if bind is None or not _is_view(bind.op) or bind.op.write_through == "read_only":
                break
            bind = self.producers.get(bind.args[0])
        return bind is not None and _is_new(bind.op)

    def is_before(self, x: Local, y: Local) -> bool:
        """Whether ``x`` is bound before ``y``."""
        if not self.positions:
            binders = [b for bind in self.fn.binds for b in bind.binders]
            self.positions = {b: i for i, b in enumerate((*self.fn.params, *binders))}
        return self.positions[x] < self.positions[y]

    def op_of(self, arg: Arg) -> Primitive | None:
        """The operation that makes a value; None for parameters and constants."""
        bind = self.producers.get(arg) if type(arg) is Local else None
        return None if bind is None else bind.op

    def number(self, arg: Arg) -> Any:
        """The known number that a value, or each of its elements, equals; None otherwise."""
        if type(arg) is Const:
            return arg.value
        bind = self.producers.get(arg)
        if bind is None or bind.op.name not in _UNIFORM:  # nearly always
            return None
        return self.uniform_number(bind)

    def uniform_number(self, bind: Bind | None) -> Any:
        """The known number that all elements of a result equal, None otherwise."""
        while bind is not None and bind.op in (broadcast_to, expand_dims, reshape):
            bind = self.producers.get(bind.args[0])
        if bind is None:
            return None
        if bind.op is zeros or bind.op is ones:
            return int(bind.op is ones)
        if bind.op is constant and bind.attrs["value"].ndim == 0:
            return bind.attrs["value"].item()
        value = bind.args[0] if bind.op is full else None
        if type(value) is Const:
            with suppress(TypeError, ValueError, OverflowError):  # nan in integers: left to NumPy
                return bind.attrs["dtype"].type(value.value).item()
        return None

    def may_be_replaced(self, y: Local, x: Arg, other: Arg | None = None) -> bool:
        """Whether ``x`` may replace ``y``, an equal result of a ufunc on ``x`` and ``other``.

        If so, note that it does.
        """
        op = self.op_of(x)
        if type(x) is not Local or op is None or x.type is not y.type or not _is_new(op):
            return False
        if not y.type.shape and op.compact == "array":  # no scalar
            return False
        # C order wins over Fortran order
        if type(other) is Local and len(other.type.shape) > 1 and not self.is_c_contiguous(x):
            return False
        return self.new_memory_may_be_replaced(y, x)

    def copy_may_be_replaced(self, y: Local, x: Local) -> bool:
        """Whether ``x`` may replace ``y``, a copy of it, if ``x`` was updated or is an argument.

        If so, note that it does.
        """
        if self.changes_copies is None:  # code that letir does not know may change a copy
            self.changes_copies = any(
                bind.op.role == "write_back" or bind.op.is_user_defined for bind in self.fn.binds
            )
        if self.changes_copies:
            return False
        source = self.source_of(x)
        if source is not None:
            return self.new_memory_may_be_replaced(y, x)
        # a copy of an argument with several axes may have another memory order
        return x not in self.producers and len(x.type.shape) == 1 and not self.may_be_result(y)

    def source_of(self, x: Local) -> Bind | None:
        """The bind that made the new memory in which updates gave ``x``; None if there is none."""
        updates: list[Local] = []
        while x not in self.sources:
            bind = self.producers.get(x)
            if bind is None or bind.op.update is None or type(bind.args[0]) is not Local:
                self.sources[x] = bind if bind is not None and _is_new(bind.op) else None
                break
            updates.append(x)
            x = bind.args[0]
        self.sources.update(dict.fromkeys(updates, self.sources[x]))
        return self.sources[x]

    def new_memory_may_be_replaced(self, y: Local, x: Local) -> bool:
        """Whether ``x`` may replace ``y``, which has memory of its own, without making two results
        share memory. If so, note that it does.
        """
        if self.may_be_result(y):
            if x in self.shared_with_results:
                return False
            self.note_replacement(y, x)
        return True

    def view_may_be_replaced(self, y: Local, x: Arg) -> bool:
        """Whether ``x`` may replace ``y``, a view of it with the same elements in the same places.

        If so, note that it does.
        """
        # a view without axes may be an array where the value is a scalar
        return bool(y.type.shape) and type(x) is Local and self.alias_may_be_replaced(y, x)

    def identity_may_be_replaced(self, y: Local, x: Local) -> bool:
        """Whether ``x`` may replace ``y``, the result of an operation that returns its operand.

        If so, note that it does.
        """
        # ``x`` is another object than ``y`` was if it replaces a view
        is_same = self.current.args[0] is x and x.type is y.type
        return is_same or self.alias_may_be_replaced(y, x)

    def alias_may_be_replaced(self, y: Local, x: Local) -> bool:
        """Whether ``x`` may replace ``y``, which shares its memory, if it is of the same type.

        If so, note that it does.
        """
        if self.may_be_result(y):
            op = self.op_of(x)
            is_own = op is not None and _is_new_object(op)
            # a result must not be an object that the caller or another result holds
            if y in self.returned and (x in self.returned or not is_own):
                return False
            self.note_replacement(y, x)
        return True

    def may_be_result(self, local: Local) -> bool:
        """Whether a result may be this value, or share memory with it."""
        if self.shared_with_results is None:  # computed only if a rule fits
            self.shared_with_results, self.returned = (
                _escaping_locals(self.fn),
                _returned_objects(self.fn),
            )
        return local in self.shared_with_results

    def note_replacement(self, y: Local, x: Local) -> None:
        """Note that ``x`` now takes the place of ``y``."""
        self.shared_with_results.add(x)
        if y in self.returned:
            self.returned.add(x)
