"""``custom_jvp``: a function with a forward rule of the user's own, which is transposed for the
reverse mode.

The function and its rule are recorded where the function is called on traced values; one bind holds
both as closed programs. Inside the rule, a call of the function on the rule's own primals is the
result that is there already.
"""

import functools
from collections.abc import Callable
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from attrs import frozen

from letir.ad.linearity import Linearity
from letir.ast.attrs import Attrs
from letir.ast.derivative_types import carries_derivative
from letir.ast.pytrees import Tree, flatten, is_leaf
from letir.ast.signatures import F, P, R
from letir.ast.terms import Lambda, Local
from letir.ast.types import ArrayType, ShapeDtype
from letir.errors import DTypeError, LetirError, MissingRule, ShapeError
from letir.eval.array_modules import type_of
from letir.eval.evaluator import run_flat
from letir.ops.autodiff.checkpoint_and_custom_jvp import custom_jvp as custom_jvp_op
from letir.ops.define.records import recast
from letir.ops.shape.shape_and_creation import zeros_like
from letir.tracing.entry import Recording, record
from letir.tracing.source_locations import user_place
from letir.tracing.trace_state import LAZY
from letir.tracing.tracer import Tracer
from letir.transforms.checkpointing import is_call_recorded, one_bind_program
from letir.transforms.custom_reverse import CustomFunction
from letir.transforms.program_call import apart, given_apart, joined, tree_of_results

_MOST_ORDERS = (
    4  # how often a rule that calls its function on other arguments is recorded in itself
)
_LINEAR = "a rule is linear in the tangents: add them up, times what does not depend on them"


class custom_jvp(CustomFunction[P, R]):
    """A function whose forward rule is given by ``defjvp(rule)``; reverse mode is its transpose.

    ``rule(primals, tangents)`` returns (result, tangent of the result), which must be linear in the
    tangents; both nest as the arguments, with None for the tangent of what is not floating. None
    as the tangent of a result stands for a zero. Arguments in ``nondiff_argnums`` may be anything;
    the rule gets them first. Keyword arguments become positional ones.

    >>> import numpy as np
    >>> from letir import grad, jvp
    >>> @custom_jvp
    ... def log1pexp(x):
    ...     return np.log1p(np.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), (1 - 1 / (1 + np.exp(x))) * t
    >>> float(grad(log1pexp)(100.0))
    1.0
    """

    kind = "custom_jvp"
    rule: Callable[..., Any] | None = None

    def defjvp(self, rule: F) -> F:
        """Set the rule, and return it: this is a decorator."""
        self.rule = rule
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Set the rule by one function an argument, None for a derivative of zero.

        ``rules[i](tangent, result, *primals)`` is the tangent of the result by argument i.
        """

        def rule(*args):
            *fixed, primals, tangents = args
            out = self(*joined(fixed, primals, self.nondiff_argnums))
            terms = [
                r(t, out, *primals)
                for r, t in zip(rules, tangents, strict=True)
                if r is not None and t is not None
            ]
            return out, functools.reduce(lambda a, b: a + b, terms) if terms else None

        self.rule = rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        positional = self.positional(args, kwargs)
        if not is_call_recorded(positional):
            return self.call_with(positional)
        if self.rule is None:
            raise LetirError(f"{self}: it has no rule\n  call its defjvp(rule) or defjvps(...)")
        for call in _RULES.get():  # in its own rule: the result that is there already [D9]
            if call.is_of(self, positional):
                return call.result
        source, _ = user_place(2)
        fixed, given = apart(positional, self.nondiff_argnums)
        function = given_apart(self.function, fixed, self.nondiff_argnums)
        primal = record(function, given, {}, LAZY)
        rule, captured = self.recorded_rule(primal, fixed, given)
        attrs = Attrs(
            name=self.name,
            primal=_flat_program(primal.fn),
            rule=rule,
            closed_over=len(primal.lifted),
        )
        # as the leaves below, and as ``linear_rule`` orders its parameters
        taken = [*primal.fn.params, *(Local(value.type) for value in captured)]
        program = one_bind_program(custom_jvp_op, attrs, taken, primal.fn.ret, source)
        leaves = primal.tree.leaves_of((given, {}), self.name)
        return _results_tree(primal.fn).unflatten(
            run_flat(program, [*leaves, *primal.lifted, *captured])
        )

    def recorded_rule(
        self, primal: Recording, fixed: tuple, given: tuple
    ) -> tuple[Lambda | None, tuple]:
        """(the rule as a program of arguments, captured values, results and tangents; what it
        captures); None for a rule that is recorded in itself too often.
        """
        # on other arguments the function records its rule in its rule, without an end of its own;
        # the missing rule is an error only where a derivative of that order is asked for
        if sum(call.custom is self for call in _RULES.get()) >= _MOST_ORDERS:
            return None, ()
        # count: without the values that f closes over [D9]
        fn, count = primal.fn, primal.tree.arrays
        tree = _results_tree(fn)
        tangents = [
            _example_value(p.type, self.name) for p in fn.params[:count] if carries_derivative(p)
        ]

        def rule(given, outs, tangents):
            result = tree.unflatten(outs)
            with _under_rule(
                _RuleCall.of(self, joined(fixed, given, self.nondiff_argnums), result)
            ):
                found = self.rule(*fixed, given, _nested_tangents(given, tangents))
            return self.tangents_of(found, tree, outs)

        outs = [_example_value(arg.type, self.name) for arg in fn.ret.args]
        recording = record(rule, (given, outs, tangents), {}, LAZY)
        return self.linear_rule(recording, primal, len(outs)), recording.lifted

    def tangents_of(self, found, tree: Tree, outs: list) -> list:
        """The tangents that the rule gave, one for each floating result."""
        if not isinstance(found, tuple) or len(found) != 2:
            raise ShapeError(f"{self}: its rule must return (result, tangent), found {found!r}")
        out, tangent = found  # out is checked only: the result is that of the function itself
        for again, expected in zip(tree.leaves_of(out, f"{self}: its rule"), outs, strict=True):
            self.check_type("result", _type_of_value(again), expected.type)
        leaves = [None] * len(outs) if tangent is None else _tangent_leaves(tree, tangent)
        if leaves is None:
            raise ShapeError(
                f"{self}: the tangent that its rule returns must nest like the result, "
                f"{tree}, found {tangent!r}"
            )
        pairs = zip(leaves, outs, strict=True)
        return [self.tangent(t, out) for t, out in pairs if carries_derivative(out)]

    def tangent(self, tangent, out: Tracer):
        """A tangent as the result's type wants it; zeros for None."""
        if tangent is None:
            return zeros_like(out)
        self.check_type("tangent", _type_of_value(tangent), out.type)
        return recast(tangent, out.dtype) if isinstance(tangent, Tracer) else tangent

    def check_type(self, what: str, found: ArrayType | None, expected: ArrayType | None) -> None:
        """Raise ShapeError or DTypeError for what the rule returns in place of another type."""
        if found is None or expected is None:
            return
        if found.shape != expected.shape:
            raise ShapeError(f"{self}: its rule gives a {what} of {found}, expected {expected}")
        if found.dtype.kind == "c" and expected.dtype.kind != "c":
            raise DTypeError(f"{self}: its rule gives a {what} of {found}, expected {expected}")

    def linear_rule(self, recording: Recording, primal: Recording, n_outs: int) -> Lambda:
        """The rule's program with what it captures right after the arguments. Raises LetirError
        that names the first operation by which it is not linear in the tangents.
        """
        params, count = recording.fn.params, primal.tree.arrays
        end = len(params) - len(recording.lifted)
        outs, tangents = params[count : count + n_outs], params[count + n_outs : end]
        over = [Local(value.type) for value in primal.lifted]
        # the operands of the bind in their order, then results and tangents; ``over`` is not read
        ordered = (*params[:count], *over, *params[end:], *outs, *tangents)
        fn = Lambda(ordered, recording.fn.binds, recording.fn.ret)
        with suppress(MissingRule):  # of an operation with a forward rule only nothing tells
            Linearity(fn, tangents, f"{self}: its rule", _LINEAR)
        return fn


# ---- inside a rule ----


@frozen(eq=False)
class _RuleCall:
    """A rule that is being recorded: of what, for which arguments, and what the result is called
    there.
    """

    custom: custom_jvp
    leaves: list
    known_as: list
    result: Any

    @classmethod
    def of(cls, custom: custom_jvp, args: tuple, result) -> "_RuleCall":
        """The call with these arguments."""
        leaves = flatten(args)[0]
        return cls(custom, leaves, list(map(_place_of, leaves)), result)

    def is_of(self, custom: custom_jvp, args: tuple) -> bool:
        """Whether ``custom(*args)`` is the result: the same arguments, not written to since."""
        leaves = flatten(args)[0]
        return (
            custom is self.custom
            and len(leaves) == len(self.leaves)
            # == of traced values is an operation
            and all(a is b for a, b in zip(leaves, self.leaves, strict=True))
            and all(_place_of(a) is b for a, b in zip(leaves, self.known_as, strict=True))
        )


_RULES: ContextVar[tuple[_RuleCall, ...]] = ContextVar("letir_custom_rules", default=())


@contextmanager
def _under_rule(call: _RuleCall):
    """Inside, the rule of this call is being recorded."""
    token = _RULES.set((*_RULES.get(), call))
    try:
        yield
    finally:
        _RULES.reset(token)


def _place_of(leaf):
    """What a traced value is bound to, which a write in place changes."""
    return leaf.arg if isinstance(leaf, Tracer) else None


# ---- types and nesting ----


def _nested_tangents(given, tangents: list):
    """The tangents nested as the arguments, None for an argument that has none."""
    leaves, spec = flatten(given)
    rest = iter(tangents)
    return spec.unflatten(
        [next(rest) if isinstance(x, Tracer) and carries_derivative(x) else None for x in leaves]
    )


def _tangent_leaves(tree: Tree, tangent) -> list | None:
    """The leaves of a tangent that nests as ``tree``, None for a zero; None if it does not."""
    try:
        leaves = tree.spec.flatten_up_to(tangent)
    except ValueError:
        return None
    return leaves if all(leaf is None or is_leaf(leaf) for leaf in leaves) else None


def _example_value(kind: ArrayType | None, name: str) -> ShapeDtype:
    """What stands for a value of this type while a rule is recorded."""
    if kind is None:
        raise DTypeError(
            f"custom_jvp {name}: the types of its arguments and results must be known before it "
            "runs\n  return arrays whose shape does not depend on values"
        )
    return ShapeDtype(kind.shape, kind.dtype, kind.weak)


def _type_of_value(value) -> ArrayType | None:
    """The type of what a rule returned."""
    return value.type if isinstance(value, Tracer) else type_of(value)


def _results_tree(fn: Lambda) -> Tree:
    """How the results of ``fn`` nest."""
    return fn.out_tree or tree_of_results(len(fn.ret.args))


def _flat_program(fn: Lambda) -> Lambda:
    """``fn`` of arrays in a row."""
    return Lambda(fn.params, fn.binds, fn.ret)
