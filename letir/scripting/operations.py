"""``script_op``: a new operation defined entirely by a script.

The body of the script is the decomposition, from which numerics, type rule, forward mode and
batching follow, as for letir's own composites; its inner function is the reverse-mode rule.
"""

import functools
import re
from collections.abc import Callable
from typing import Any, overload

from letir.ast import entry_point
from letir.ast.attrs import Required
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.terms import Lambda, Local, Ret
from letir.ast.types import ArrayType, ShapeDtype
from letir.errors import LetirError, ShapeError
from letir.ops.autodiff.scripted import emit_backward, mapped_scripted
from letir.ops.define.batch_rules import types_without_batch
from letir.ops.define.records import composite_record
from letir.passes.dead_code_elimination import dead_code
from letir.scripting.lowering.emission import ScriptLowering
from letir.scripting.lowering.lambda_lifting import Rule, operands_of
from letir.scripting.script_terms import GROUP, STATIC, Group
from letir.scripting.scripts import Script, constant_of
from letir.scripting.units import script
from letir.scripting.value_leaves import plain_result
from letir.visitors.substitution import substitute


@overload
def script_op(name: str, source: str | Callable[..., Any]) -> Primitive: ...
@overload
def script_op(name: str, source: None = None) -> Callable[[Callable[..., Any]], Primitive]: ...
@entry_point
def script_op(
    name: str, source: str | Callable[..., Any] | None = None
) -> Primitive | Callable[[Callable[..., Any]], Primitive]:
    """A new operation ``package.name`` from source code or from the decorated function.

    The result behaves like letir's own operations: it computes on arrays, is recorded by its name
    on traced values, printed and parsed, differentiated in both modes to any order, and batched.
    Parameters annotated as int, bool, str or lists of these are attributes. Forward mode
    differentiates the body: if the inner function is not its derivative, the two modes differ.
    Defining a name again replaces the operation.

    >>> import numpy as np
    >>> from letir import trace
    >>> @script_op("doc.cube")
    ... def cube(x):
    ...     def backward(g):
    ...         return 3 * g * x * x
    ...     return x * x * x, backward
    >>> cube(2.0)
    8.0
    >>> print(trace(cube, np.ones(3)).listing(), end="")
    %1 = doc.cube %0
    return %1
    """
    if source is None:
        return functools.partial(script_op, name)
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", name):
        raise LetirError(
            f"name your operation package.name, found {name!r}\n"
            "  names without a package belong to letir: write 'mine.add', not 'add'"
        )
    operation = _Operation(name, script(source))
    rules: dict[str, Any] = {}
    if operation.has_backward:
        rules = {"vjp": operation.vjp, "batch": operation.batch}
    record = composite_record(
        name,
        operation.decompose,
        prepare=operation.prepare,
        results=operation.results if operation.n_outs > 1 else None,
        **rules,
    )
    record.set_attrs(operation.attrs())  # from the script, not from the signature of decompose
    PRIMITIVES[name] = record
    return record


class _Operation:
    """The rules of an operation that a script defines."""

    def __init__(self, name: str, definition: Script):
        self.name, self.script = name, definition
        first = definition.overloads[0]  # all overloads must have its parameters and results
        self.params = first.params
        self.has_backward = all(function.inner is not None for function in definition.overloads)
        self.n_outs = self.count(first)
        for function in definition.overloads:
            self.check(function)

    def check(self, function) -> None:
        """Raise LetirError if a function cannot be an operation, or differs from the first one."""
        params, at = function.params, function.source(function.at)
        if any(param.kind == GROUP for param in params):
            raise LetirError(f"{self.name}: an operand is one array, not a tuple\n  at {at}")
        if all(param.kind == STATIC for param in params):
            raise LetirError(f"{self.name}: an operation needs an array\n  at {at}")
        same = [(p.name, p.kind == STATIC) for p in params] == [
            (p.name, p.kind == STATIC) for p in self.params
        ]
        if not same or self.count(function) != self.n_outs:
            raise LetirError(
                f"{self.name}: its overloads differ in parameters or results\n  at {at}"
            )

    def count(self, function) -> int:
        """The number of results."""
        if function.inner is not None:
            return len(function.inner.params)
        return len(function.results.items) if type(function.results) is Group else 1

    def attrs(self) -> dict:
        """The attributes and their defaults."""
        return {
            param.name: Required if param.default is None else constant_of(param.default)
            for param in self.params
            if param.kind == STATIC
        }

    def results(self, **_) -> int:
        """The number of results of a bind."""
        return self.n_outs

    def prepare(self, *args, **kwargs) -> tuple[list, dict]:
        """(operands, attributes) of a call."""
        bound = self.script.pick(args, kwargs)
        pairs = list(zip(bound.values, bound.function.params, strict=True))
        operands = [value for value, param in pairs if param.kind != STATIC]
        return operands, {p.name: value for value, p in pairs if p.kind == STATIC}

    def bound(self, operands: tuple, attrs: dict):
        """The overload for these operands and attributes."""
        rest = iter(operands)
        values = [attrs[p.name] if p.kind == STATIC else next(rest) for p in self.params]
        return self.script.pick(values, {})

    def decompose(self, *operands, **attrs):
        """The body on Values."""
        bound = self.bound(operands, attrs)
        builder = next(value.emitter for value in operands if isinstance(value, Value))
        names = [param.name for param in bound.function.params]
        env = dict(zip(names, bound.values, strict=True))
        result = plain_result(
            ScriptLowering(builder, bound.function, self.script.scripts, env).run()
        )
        count = len(result) if isinstance(result, tuple) else 1
        if count != self.n_outs:
            raise ShapeError(
                f"{self.name}: its body gives {count} results, not {self.n_outs}\n"
                "  correct the script: the number of its results is fixed"
            )
        return result

    def vjp(self, cts, outs, *args, transform, **attrs) -> tuple:
        """The gradients by the inner function, for a cotangent or a tuple of them."""
        if self.n_outs == 1:
            cts, outs = (cts,), (outs,)
        bound = self.bound(args, attrs)
        rule, operands = self.script.rule(bound), operands_of(bound.values, bound.function)
        # a composite has no further results that could hold residuals
        captured = _recompute_captured(rule, operands, outs)
        pulled = emit_backward(
            cts, outs, (*operands, *outs, *captured), rule.backward, rule.context
        )
        by_operand = dict(zip(rule.gradients, pulled, strict=True))
        places = iter(range(len(operands)))
        return tuple(None if arg is None else by_operand.get(next(places)) for arg in args)

    def batch(self, args, axes, *, transform, **attrs):
        """The script on all examples at once, with its own backward."""
        kinds = types_without_batch(args, axes)
        bound = self.bound(tuple(map(_operand_stand_in, kinds)), attrs)
        pairs = [pair for pair in zip(args, axes, strict=True) if pair[0] is not None]
        # recorded as a ``scripted`` bind, which holds both programs
        attrs = self.script.attrs(self.script.rule(bound))
        results, out_axes = mapped_scripted(*zip(*pairs, strict=True), transform=transform, **attrs)
        if self.n_outs == 1:
            return results[0], out_axes[0]
        return results[: self.n_outs], out_axes[: self.n_outs]


def _operand_stand_in(aval: ArrayType | None) -> ShapeDtype | None:
    """A stand-in for an operand of this type, for choosing an overload."""
    return None if aval is None else ShapeDtype(aval.shape, aval.dtype, aval.weak)


def _recompute_captured(rule: Rule, operands: list, outs: tuple) -> tuple:
    """The captured values that are neither operands nor results, recomputed from the operands."""
    fn, count = rule.forward, rule.n_outs
    if len(fn.ret.args) == count:
        return ()
    params = [Local(result.type) for result in fn.ret.args[:count]]
    operands_of_names = {
        result: param
        for result, param in zip(fn.ret.args, params, strict=False)
        if type(result) is Local and result not in fn.params  # operands are available as such
    }
    whole = Lambda([*fn.params, *params], fn.binds, Ret(fn.ret.args[count:]))
    return outs[0].emitter.call(dead_code(substitute(whole, operands_of_names)), [*operands, *outs])
