"""The reverse mode of ``scan``: a scan of the cotangents in the opposite direction.

The backward pass reads residuals of every step. ``scan_with_residuals`` makes the forward scan
stack them; the reverse transform calls it. If residuals are missing, ``scan_vjp`` reruns the loop
and stacks them.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from attrs import frozen

from letir.ast.activity import carry_requiring_grad, results_requiring_grad
from letir.ast.builder import LetBuilder, Value
from letir.ast.liveness import live_binds
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.ast.types import ArrayType
from letir.ops.autodiff.checkpoint_and_custom_jvp import body_type, without_effects
from letir.ops.control_flow.loop_accumulation import split_products, sum_products
from letir.ops.control_flow.loop_analysis import (
    GradientOf,
    fit_step,
    follows_while_scan,
    invariant_locals,
    partial_program,
    propagate_defined,
)
from letir.ops.define.records import add_terms, takes_gradient, unbroadcast
from letir.ops.elementwise.casting import weaken
from letir.ops.shape.shape_and_creation import zeros_like

_MAX_ROUNDS = 4  # the derivative of a body that saves residuals may read further residuals


# ---- residuals of a step ----


class StepDerivative:
    """The derivative of one step of a loop, and the residuals that it reads.

    ``f`` is ``body`` with temporaries as further results; ``captured`` are the locals of ``f`` that
    the derivative reads.
    """

    body: Lambda
    n_carry: int
    n_xs: int

    @property
    def f(self) -> Lambda:
        """The body, with temporaries as further results."""
        raise NotImplementedError

    @property
    def captured(self) -> list:
        """The residuals that the derivative of a step reads."""
        raise NotImplementedError

    def stacked(self) -> dict[Local, int]:
        """The locals that the loop stacks, each with its position among the results."""
        result: dict[Local, int] = {}
        for i, arg in enumerate(self.f.ret.args[: len(self.body.ret.args)]):
            if i >= self.n_carry and type(arg) is Local:
                result.setdefault(arg, i)
        return result

    def constant(self) -> set[Local]:
        """The loop-invariant locals."""
        return invariant_locals(self.f, self.n_carry + self.n_xs)

    def missing_residuals(self) -> list[Local]:
        """The residuals that the loop does not stack."""
        end = self.n_carry + self.n_xs
        known = self.constant() | self.stacked().keys() | set(self.body.params[self.n_carry : end])
        return [local for local in dict.fromkeys(self.captured) if local not in known]

    def saving_body(self) -> Lambda:
        """The body with the missing residuals as further results."""
        results = (*self.f.ret.args[: len(self.body.ret.args)], *self.missing_residuals())
        return Lambda(self.f.params, self.f.binds, Ret(results))


_Step = TypeVar("_Step", bound=StepDerivative)


def stack_missing(derive: Callable[[Lambda], _Step], body: Lambda) -> _Step:
    """``derive(body)``; a body with missing residuals first gets them as further results."""
    step = derive(body)
    for _ in range(_MAX_ROUNDS):
        if not step.missing_residuals():
            break
        step = derive(step.saving_body())
    return step


@frozen(eq=False)
class ReverseStep(StepDerivative):
    """One step of the backward pass: the program from cotangents of results to parameters.

    ``gradient`` is the gradient program of ``body`` with respect to the parameters ``needed``, for
    cotangents of the results ``defined``.
    """

    body: Lambda
    n_carry: int
    n_xs: int
    needed: list[bool]
    defined: list[bool]
    gradient: Any

    @classmethod
    def from_body(
        cls,
        body: Lambda,
        n_carry: int,
        n_xs: int,
        needed: Sequence[bool],
        defined: Sequence[bool],
        differentiate: Callable,
    ) -> "ReverseStep":
        """The backward step of ``body``, for these operands and results of the loop."""
        needed = carry_requiring_grad(body, needed, n_carry)
        active = results_requiring_grad(body, needed)
        defined = [a and b for a, b in zip(defined, active, strict=True)]
        defined = propagate_defined(body, defined, needed, n_carry)
        gradient = GradientOf(differentiate, tuple(needed), tuple(defined))
        return cls(body, n_carry, n_xs, needed, defined, body.memo(gradient))

    @property
    def f(self) -> Lambda:
        """The body, with temporaries as further results."""
        return self.gradient.f

    @property
    def captured(self) -> list:
        """The residuals that the gradient program of a step reads."""
        f, g = self.gradient.f, self.gradient
        inputs = [f.params[i] for i in g.df_input_captured_inputs]
        return inputs + [f.ret.args[i] for i in g.df_input_captured_outputs]


def stack_residuals(
    body: Lambda,
    n_carry: int,
    n_xs: int,
    needed: Sequence[bool],
    defined: Sequence[bool],
    differentiate: Callable,
) -> ReverseStep:
    """The backward step of ``body`` with further results, so that no residual is missing."""

    def derive(body: Lambda) -> ReverseStep:
        further = [False] * (len(body.ret.args) - len(defined))
        return ReverseStep.from_body(
            body, n_carry, n_xs, needed, [*defined, *further], differentiate
        )

    return stack_missing(derive, body)


def scan_with_residuals(
    bind: Bind, needed: Sequence[bool], defined: Sequence[bool], differentiate: Callable
) -> Bind:
    """``bind`` with the residuals of its vjp as further results; ``bind`` if it stacks them all."""
    attrs = bind.attrs
    n_carry, n_xs = attrs["n_carry"], attrs["n_xs"]
    # recorded for any size perhaps: the residuals have the sizes of the operands
    body = fit_step(attrs["body"], [arg.type for arg in bind.args], n_carry, n_xs)
    step = stack_residuals(body, n_carry, n_xs, needed, defined, differentiate)
    return with_stacking_body(bind, step.body)


def with_stacking_body(bind: Bind, body: Lambda) -> Bind:
    """``bind`` with its body replaced by ``body``, which has further results to stack."""
    attrs, n_carry = bind.attrs, bind.attrs["n_carry"]
    if attrs["body"] is body:
        return bind
    attrs = bind.op.complete({**attrs, "body": body})
    stacked = bind.binders[n_carry].type if len(bind.binders) > n_carry else None
    n = _trips_of(bind, stacked)
    more = [arg.type for arg in body.ret.args[len(bind.binders) :]]
    fresh = [Local(aval and ArrayType(aval.dtype, (n, *aval.shape))) for aval in more]
    return Bind((*bind.binders, *fresh), bind.op, bind.args, attrs, bind.source)


def _trips_of(bind: Bind, stacked: ArrayType | None):
    """The trip count: the size of axis 0 of a stacked result, or of a scanned array."""
    if stacked is not None:
        return stacked.shape[0]
    length = bind.attrs["length"]
    return bind.args[bind.attrs["n_carry"]].type.shape[0] if length is None else length


# ---- the reverse mode ----


def scan_vjp(
    cts: Sequence,
    outs: Sequence,
    *args: Any,
    body: Lambda,
    n_carry: int,
    n_xs: int,
    length: int | None,
    reverse: bool,
    transform: Any,
    wanted: Sequence[bool] | None = None,
) -> tuple:
    """A scan in the opposite direction that carries the cotangents of the carry.

    The cotangents of operands that all steps share are accumulated.
    """
    wanted = [True] * len(args) if wanted is None else wanted
    needed = [w and takes_gradient(arg) for w, arg in zip(wanted, args, strict=True)]
    defined = [ct is not None for ct in cts]
    body = fit_step(body, list(map(body_type, args)), n_carry, n_xs)
    step = ReverseStep.from_body(body, n_carry, n_xs, needed, defined, transform.program)
    if step.missing_residuals():  # rerun the loop, which then stacks the missing residuals
        silent = without_effects(body)
        step = stack_residuals(silent, n_carry, n_xs, needed, defined, transform.program)
        attrs = {"n_carry": n_carry, "n_xs": n_xs, "length": length, "reverse": reverse}
        outs = emit_scan(args, body=step.body, **attrs)
    more = [None] * (len(step.body.ret.args) - len(cts))
    is_ragged = follows_while_scan(list(map(body_type, args)), n_carry, n_xs)
    numbers = args[n_carry] if is_ragged else None
    return scan_backward(step, [*cts, *more], outs, args, ScanBuilder(length, not reverse, numbers))


class ScanBuilder:
    """A scan under construction: its operands, each with the parameter of the body for it.

    ``numbers``: the iteration numbers, if the scan runs over the iterations of a ``while_scan``.
    """

    def __init__(self, length: int | None, reverse: bool, numbers: Value | None = None):
        self.length, self.reverse = length, reverse
        self.builder = LetBuilder()
        self.carry: list[tuple] = []
        self.rows: list[tuple] = []
        self.shared: list[tuple] = []
        self.numbers = None if numbers is None else self.row(numbers)  # first, and always kept

    def carried(self, operand: Any) -> Value:
        """A parameter for a carried value whose initial value is ``operand``."""
        aval = body_type(operand)
        return self._param(self.carry, operand, aval and ArrayType(aval.dtype, aval.shape))

    def row(self, operand: Value) -> Value:
        """A parameter for one row of the array ``operand``, over which the loop runs."""
        aval = operand.type
        return self._param(self.rows, operand, aval and aval.with_shape(aval.shape[1:]))

    def share(self, operand: Any) -> Value:
        """A parameter for a value that all steps read."""
        return self._param(self.shared, operand, body_type(operand))

    def _param(self, pairs: list, operand, aval: ArrayType | None) -> Value:
        param = Value(self.builder, Local(aval))
        pairs.append((operand, param))
        return param

    def emit(self, carry: Sequence, ys: Sequence, extra: Sequence = ()) -> tuple[tuple, tuple]:
        """(last carry, stacked ys) of the scan whose body returns ``carry`` and ``ys``.

        ``extra``: arrays of which the first gives the trip count, if no operand does.
        """
        if not carry and not ys:  # there is no derivative, for example if all operands are integers
            return (), ()
        body = self.builder.build([*carry, *ys])
        body = body.with_binds(live_binds(body))  # _SharedCotangents leaves dead sums
        used = {x for bind in body.binds for x in bind.locals()}.union(body.ret.locals())
        self.rows = [pair for pair in self.rows if pair[1].arg in used or pair[1] is self.numbers]
        self.shared = [pair for pair in self.shared if pair[1].arg in used]
        if self.length is None and not self.rows:
            self.row(extra[0])
        pairs = [*self.carry, *self.rows, *self.shared]
        body = Lambda([param.arg for _, param in pairs], body.binds, body.ret)
        attrs = {"n_carry": len(self.carry), "n_xs": len(self.rows)}
        attrs |= {"length": self.length, "reverse": self.reverse}
        outs = emit_scan([operand for operand, _ in pairs], body=body, **attrs)
        return outs[: len(carry)], outs[len(carry) :]


def emit_scan(operands: Sequence, **attrs: Any) -> tuple:
    """Record a ``scan`` where its operands are recorded."""
    op = PRIMITIVES["scan"]
    emitter = next(v.emitter for v in operands if isinstance(v, Value))
    return emitter.apply(op, tuple(operands), op.complete(attrs))


def scan_backward(
    step: ReverseStep, cts: Sequence, outs: Sequence, args: Sequence, loop: ScanBuilder
) -> tuple:
    """The cotangents of the operands, by a scan over the steps in the opposite order."""
    g, n_carry = step.gradient, step.n_carry
    end = n_carry + step.n_xs
    # includes carried values that a step replaces by values without a cotangent: with a trip count
    # of 0 the result is the operand
    known = {
        *g.df_input_vjps,
        *g.df_output_vjps,
        *[i for i, ct in enumerate(cts) if ct is not None],
    }
    carry = [i for i in range(n_carry) if step.needed[i] and i in known]
    if not (g.df_input_vjps or carry):
        return (None,) * len(args)
    by_result = {i: loop.carried(zeros_like(outs[i]) if cts[i] is None else cts[i]) for i in carry}
    by_result |= {i: loop.row(cts[i]) for i in g.df_input_vjps if i >= n_carry}
    reads = residual_params(step, outs, args, loop)
    pulled = loop.builder.call(g.df, [*[by_result[i] for i in g.df_input_vjps], *reads])
    pairs = zip(g.df_output_vjps, pulled, strict=True)
    by_param = {i: ct for i, ct in pairs if isinstance(ct, Value)}
    xs = [i for i in by_param if n_carry <= i < end]
    sums = _SharedCotangents(loop, {i: (args[i], ct) for i, ct in by_param.items() if i >= end})
    results = [by_param[i] if i in by_param else zeros_like(by_result[i]) for i in carry]
    ys = [by_param[i] for i in xs]
    first, rows = loop.emit([*results, *sums.carry], [*ys, *sums.factors], args[n_carry:])
    answers = dict(zip([*carry, *xs], [*first[: len(carry)], *rows[: len(xs)]], strict=True))
    answers |= sums.totals(first[len(carry) :], rows[len(xs) :])
    return tuple([unbroadcast(answers.get(i), arg) for i, arg in enumerate(args)])


class _SharedCotangents:
    """The cotangents of operands that all steps read: sums over the steps.

    Products of matrices are summed after the loop, for which each step stacks ``factors``; other
    terms are accumulated in the loop, in ``carry``.
    """

    def __init__(self, loop: "ScanBuilder", terms: dict[int, tuple]):
        self.loop, self.products, self.carried = loop, {}, []
        self.carry: list[Value] = []
        makers: dict[Arg, Bind] = {b: bind for bind in loop.builder.binds for b in bind.binders}
        rows = {param.arg: operand for operand, param in loop.rows}
        has_length = loop.length is not None
        parts = {
            i: split_products(ct.arg, makers) if has_length else ([], [ct.arg])
            for i, (_, ct) in terms.items()
        }
        stackable = {p.b for group, _ in parts.values() for p in group if p.is_small} | rows.keys()
        for i, (products, rest) in parts.items():
            self.products[i] = [p for p in products if p.b in stackable]
            rest += [p.result for p in products if p.b not in stackable]
            if rest:
                values = add_terms(Value(loop.builder, local) for local in rest)
                self.carry.append(loop.carried(zeros_like(terms[i][0])) + values)
                self.carried.append(i)
        factors = [x for terms in self.products.values() for p in terms for x in (p.a, p.b)]
        self.stacked = {x: rows[x] for x in factors if x in rows}
        self.missing = [x for x in dict.fromkeys(factors) if x not in rows]
        self.factors = [Value(loop.builder, x) for x in self.missing]

    def totals(self, carried: Sequence[Value], rows: Sequence[Value]) -> dict[int, Value]:
        """The sum for each operand, from the last carry and the stacked rows of the loop."""
        stacked = self.stacked | dict(zip(self.missing, rows, strict=True))
        result: dict = dict(zip(self.carried, carried, strict=True))
        for i, terms in self.products.items():
            if terms:
                total = sum_products(terms, stacked)
                result[i] = result[i] + total if i in result else total
        return result


def residual_params(
    step: StepDerivative, outs: Sequence, args: Sequence, loop: ScanBuilder
) -> list[Value]:
    """The residuals that the derivative of a step reads, as parameters of the body of ``loop``."""
    f, end = step.f, step.n_carry + step.n_xs
    place = {param: i for i, param in enumerate(f.params)}
    stacked, constant = step.stacked(), step.constant()
    computed = [x for x in step.captured if x in constant and x not in place]
    values: dict[Local, Value] = {}
    if computed:
        program = partial_program(f, f.params[end:], computed)
        emitter = next(v.emitter for v in (*outs, *args) if isinstance(v, Value))
        residuals = emitter.call(program, args[end:])
        values |= {x: loop.share(v) for x, v in zip(computed, residuals, strict=True)}
    for x in step.captured:
        if x in values:
            continue
        if x in stacked:
            row = loop.row(outs[stacked[x]])
            values[x] = weaken(row) if x.type is not None and x.type.weak else row
        elif place[x] < end:
            values[x] = loop.row(args[place[x]])
        else:
            values[x] = loop.share(args[place[x]])
    return [values[x] for x in step.captured]


def tangent_body(body: Lambda, n_carry: int, tangents: Sequence, program: Callable) -> tuple:
    """(inputs that have a tangent in any step, ``program(body, inputs)``): a fixpoint."""
    inputs = [i for i, t in enumerate(tangents) if t is not None]
    while True:
        result = program(body, inputs)
        grown = sorted({*inputs, *[i for i in result[1] if i < n_carry]})
        if grown == inputs:
            return inputs, result
        inputs = grown
