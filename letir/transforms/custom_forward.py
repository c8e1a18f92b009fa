"""``custom_jvp``: a function with a user-defined forward rule, transposed for reverse mode.

A call on traced values records the function and its rule; one bind holds both as closed programs.
Inside the rule, a call of the function on the rule's primals returns the known result instead of
recording the function again.
"""

import functools
from collections.abc import Callable
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from attrs import frozen

from letir.ad.linearity import Linearity
from letir.ast import LATE_BOUND, entry_point
from letir.ast.attrs import Attrs
from letir.ast.derivative_types import carries_derivative
from letir.ast.pytrees import Tree, flatten, is_leaf
from letir.ast.signatures import F, P, R, dir_of
from letir.ast.terms import Lambda, Local
from letir.ast.types import ArrayType, ShapeDtype
from letir.errors import DTypeError, LetirError, MissingRule, ShapeError
from letir.eval.array_modules import type_of
from letir.eval.evaluator import run_flat
from letir.ops.autodiff.checkpoint_and_custom_jvp import custom_jvp as custom_jvp_op
from letir.ops.define.records import cast_cotangent
from letir.ops.shape.shape_and_creation import zeros_like
from letir.tracing.entry import Recording, record
from letir.tracing.source_locations import user_place
from letir.tracing.trace_state import DRAW_AT_ONCE, LAZY
from letir.tracing.tracer import Tracer
from letir.transforms.checkpointing import is_call_recorded, one_bind_program
from letir.transforms.custom_reverse import CustomFunction
from letir.transforms.program_call import (
    bind_arguments,
    merge_arguments,
    split_arguments,
    tree_of_results,
)

_MAX_ORDERS = 4  # how deep the recordings of a rule that calls its own function may nest
_LINEAR = (
    "a rule is linear in the tangents: a sum of tangents times values that do not depend on them"
)


class custom_jvp(CustomFunction[P, R]):
    """A function whose forward rule is given by ``defjvp(rule)``; reverse mode is its transpose.

    ``rule(primals, tangents)`` returns (result, tangent of the result); the latter must be linear
    in the tangents. ``primals`` and ``tangents`` nest as the arguments, with None as the tangent of
    an argument that is not floating. A result tangent None stands for zero. Arguments in
    ``nondiff_argnums`` may be any objects; the rule takes them first. Keyword arguments become
    positional ones.

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
    __dir__ = dir_of("defjvp", "defjvps")
    rule: Callable[..., Any] | None = None

    @entry_point
    def defjvp(self, rule: F) -> F:
        """Set the derivative rule and return it, so that this can be used as a decorator."""
        LATE_BOUND["refuse_unless_function"](f"{self}: the rule", rule)
        self.rule = rule
        return rule

    @entry_point
    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Set the rule by one function for each argument, None for a derivative of zero.

        ``rules[i](tangent, result, *primals)`` is the contribution of the tangent of argument i to
        the tangent of the result.
        """

        for rule_given in rules:
            if rule_given is not None:
                LATE_BOUND["refuse_unless_function"](f"{self}: a rule", rule_given)

        def rule(*args):
            *fixed, primals, tangents = args
            if len(primals) != len(rules):
                raise ShapeError(
                    f"{self}: defjvps got {len(rules)} rules for {len(primals)} arguments\n"
                    "  give one for each argument, None for a derivative of zero"
                )
            out = self(*merge_arguments(fixed, primals, self.nondiff_argnums))
            terms = [
                r(t, out, *primals)
                for r, t in zip(rules, tangents, strict=True)
                if r is not None and t is not None
            ]
            return out, functools.reduce(lambda a, b: a + b, terms) if terms else None

        self.rule = rule

    @entry_point
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        positional = self.positional(args, kwargs)
        if not is_call_recorded(positional):
            return self.call_with(positional)
        if self.rule is None:
            raise LetirError(f"{self}: it has no rule\n  call its defjvp(rule) or defjvps(...)")
        for call in _RULES.get():  # inside its own rule: return the known result [semantics.md D9]
            if call.is_call_of(self, positional):
                return call.result
        source, _ = user_place(2)
        fixed, dynamic = split_arguments(
            positional, self.nondiff_argnums, f"{self}: nondiff_argnums"
        )
        function = bind_arguments(self.function, fixed, self.nondiff_argnums)
        primal = record(function, dynamic, {}, LAZY, draws=DRAW_AT_ONCE)
        rule, captured = self.recorded_rule(primal, fixed, dynamic)
        attrs = Attrs(
            name=self.name,
            primal=_flat_program(primal.fn),
            rule=rule,
            closed_over=len(primal.lifted),
        )
        # in the order of the leaves below, and of the parameters in ``linear_rule``
        params = [*primal.fn.params, *(Local(value.type) for value in captured)]
        program = one_bind_program(custom_jvp_op, attrs, params, primal.fn.ret, source)
        leaves = primal.tree.leaves_of((dynamic, {}), self.name)
        return _results_tree(primal.fn).unflatten(
            run_flat(program, [*leaves, *primal.lifted, *captured])
        )

    def recorded_rule(
        self, primal: Recording, fixed: tuple, dynamic: tuple
    ) -> tuple[Lambda | None, tuple]:
        """(program of the rule, captured values); the program is None at the recursion limit.

        Parameters of the program: arguments, captured values, results, tangents.
        """
        # a rule that calls its function on other arguments would record itself without end; beyond
        # the limit the rule is missing, which is an error only if a derivative of that order is
        # computed
        if sum(call.custom is self for call in _RULES.get()) >= _MAX_ORDERS:
            return None, ()
        # count: the arguments, without the values that f closes over [semantics.md D9]
        fn, count = primal.fn, primal.tree.arrays
        tree = _results_tree(fn)
        tangents = [
            _example_value(p.type, self.name) for p in fn.params[:count] if carries_derivative(p)
        ]

        def rule(dynamic, outs, tangents):
            result = tree.unflatten(outs)
            with _under_rule(
                _RuleCall.from_call(
                    self, merge_arguments(fixed, dynamic, self.nondiff_argnums), result
                )
            ):
                nested = _nested_tangents(dynamic, tangents)
                caller = f"{self}: its rule"
                pair = LATE_BOUND["call_rule"](caller, self.rule, *fixed, dynamic, nested)
            return self.check_rule_result(pair, tree, outs)

        outs = [_example_value(arg.type, self.name) for arg in fn.ret.args]
        recording = record(rule, (dynamic, outs, tangents), {}, LAZY, draws=DRAW_AT_ONCE)
        return self.linear_rule(recording, primal, len(outs)), recording.lifted

    def check_rule_result(self, result: Any, tree: Tree, outs: list) -> list:
        """The tangents that the rule returned, one for each floating result."""
        if not isinstance(result, tuple) or len(result) != 2:
            raise ShapeError(
                f"{self}: its rule must return (result, tangent), found "
                f"{LATE_BOUND['describe_value'](result)}\n"
                "  the result as the function computes it, and its change along the tangents"
            )
        out, tangent = result  # ``out`` is only checked; the result is computed by the function
        for leaf, expected in zip(tree.leaves_of(out, f"{self}: its rule"), outs, strict=True):
            self.check_type("result", _type_of_value(leaf), expected.type)
        leaves = [None] * len(outs) if tangent is None else _tangent_leaves(tree, tangent)
        if leaves is None:
            raise ShapeError(
                f"{self}: the tangent that its rule returns must nest like the result, "
                f"{tree}, found {LATE_BOUND['describe_value'](tangent)}\n"
                "  return one tangent for each result"
            )
        pairs = zip(leaves, outs, strict=True)
        return [self.typed_tangent(t, out) for t, out in pairs if carries_derivative(out)]

    def typed_tangent(self, tangent: Any, out: Tracer) -> Any:
        """``tangent`` in the type of the result ``out``; zeros for None."""
        if tangent is None:
            return zeros_like(out)
        self.check_type("tangent", _type_of_value(tangent), out.type)
        return cast_cotangent(tangent, out.dtype) if isinstance(tangent, Tracer) else tangent

    def check_type(self, role: str, aval: ArrayType | None, expected: ArrayType | None) -> None:
        """Raise ShapeError or DTypeError if the rule returned a ``role`` of another type."""
        if aval is None or expected is None:
            return
        if aval.shape != expected.shape:
            raise ShapeError(
                f"{self}: its rule gives a {role} of {aval}, expected {expected}\n"
                "  result and tangent have the type of the function's result"
            )
        if aval.dtype.kind == "c" and expected.dtype.kind != "c":
            raise DTypeError(
                f"{self}: its rule gives a {role} of {aval}, expected {expected}\n"
                "  take .real of it"
            )

    def linear_rule(self, recording: Recording, primal: Recording, n_outs: int) -> Lambda:
        """The program of the rule, with parameters in the order of the bind's operands.

        Raises LetirError that names the first operation that is not linear in the tangents.
        """
        params, count = recording.fn.params, primal.tree.arrays
        end = len(params) - len(recording.lifted)
        outs, tangents = params[count : count + n_outs], params[count + n_outs : end]
        lifted = [Local(value.type) for value in primal.lifted]
        # the operands of the bind in their order, then results and tangents; ``lifted`` is not read
        ordered = (*params[:count], *lifted, *params[end:], *outs, *tangents)
        fn = Lambda(ordered, recording.fn.binds, recording.fn.ret)
        with suppress(MissingRule):  # the linearity of operations without a vjp is not checked
            Linearity(fn, tangents, f"{self}: its rule", _LINEAR)
        return fn


# ---- inside a rule ----


@frozen(eq=False)
class _RuleCall:
    """A rule that is being recorded: its function, arguments, and the result of the call.

    ``known_as``: the locals to which traced arguments were bound.
    """

    custom: custom_jvp
    leaves: list
    known_as: list
    result: Any

    @classmethod
    def from_call(cls, custom: custom_jvp, args: tuple, result) -> "_RuleCall":
        """A call of ``custom`` with these arguments and this result."""
        leaves = flatten(args)[0]
        return cls(custom, leaves, list(map(_place_of, leaves)), result)

    def is_call_of(self, custom: custom_jvp, args: tuple) -> bool:
        """Whether ``custom(*args)`` is this call: the same arguments, not mutated since."""
        leaves = flatten(args)[0]
        return (
            custom is self.custom
            and len(leaves) == len(self.leaves)
            # ``is``, because == of traced values records an operation
            and all(a is b for a, b in zip(leaves, self.leaves, strict=True))
            and all(_place_of(a) is b for a, b in zip(leaves, self.known_as, strict=True))
        )


_RULES: ContextVar[tuple[_RuleCall, ...]] = ContextVar("letir_custom_rules", default=())


@contextmanager
def _under_rule(call: _RuleCall):
    """A context in which the rule of this call is being recorded."""
    token = _RULES.set((*_RULES.get(), call))
    try:
        yield
    finally:
        _RULES.reset(token)


def _place_of(leaf):
    """The local to which a traced value is bound; a mutation binds it to another."""
    return leaf.arg if isinstance(leaf, Tracer) else None


# ---- types and nesting ----


def _nested_tangents(arguments, tangents: list):
    """The tangents nested as the arguments, None for arguments without a tangent."""
    leaves, spec = flatten(arguments)
    rest = iter(tangents)
    return spec.unflatten(
        [next(rest) if isinstance(x, Tracer) and carries_derivative(x) else None for x in leaves]
    )


def _tangent_leaves(tree: Tree, tangent) -> list | None:
    """The leaves of a tangent, None for zero ones; None if it does not nest as ``tree``."""
    try:
        leaves = tree.spec.flatten_up_to(tangent)
    except ValueError:
        return None
    return leaves if all(leaf is None or is_leaf(leaf) for leaf in leaves) else None


def _example_value(aval: ArrayType | None, name: str) -> ShapeDtype:
    """A placeholder for a value of this type while a rule is recorded."""
    if aval is None:
        raise DTypeError(
            f"custom_jvp {name}: the types of its arguments and results must be known before it "
            "runs\n  return arrays whose shape does not depend on values"
        )
    return ShapeDtype(aval.shape, aval.dtype, aval.weak)


def _type_of_value(value) -> ArrayType | None:
    """The type of ``value``, traced or not."""
    return value.type if isinstance(value, Tracer) else type_of(value)


def _results_tree(fn: Lambda) -> Tree:
    """The nesting of the results of ``fn``."""
    return fn.out_tree or tree_of_results(len(fn.ret.args))


def _flat_program(fn: Lambda) -> Lambda:
    """``fn`` with flat parameters and results."""
    return Lambda(fn.params, fn.binds, fn.ret)
