"""Lambda lifting: a script at given types becomes two closed programs [semantics.md G1].

``ClosedPrograms`` is the pair in the form that scripts show, ``Rule`` in the form for operations:
programs of flat arrays, only the values that the backward reads, and gradients that fit their
operands [semantics.md D9].
"""

from collections.abc import Mapping
from functools import partial

from attrs import frozen

from letir.ast.builder import LetBuilder, Value
from letir.ast.derivative_types import strong_type
from letir.ast.primitive import PRIMITIVES
from letir.ast.pytrees import LEAF, Tree, flatten
from letir.ast.terms import Arg, Lambda, Local
from letir.ast.types import PYTHON_NUMBERS, ArrayType
from letir.errors import DTypeError, LetirError, ShapeError
from letir.ops.define.records import cast_cotangent
from letir.ops.shape.shape_and_creation import Sizes
from letir.passes.dead_code_elimination import dead_code
from letir.scripting.frontend.statements import Gradients
from letir.scripting.lowering.emission import ScriptLowering
from letir.scripting.script_terms import GROUP, SCALAR, SHAPE, STATIC, Group, Param, ScriptFunction
from letir.scripting.value_leaves import leaves_of, parameters_for, plain_result


@frozen(eq=False)
class Spec:
    """The kinds of a script's arguments, one for each parameter.

    The kind of a static argument is its value. The kind of any other argument is a type (None if
    unknown), ``MISSING`` for None, or a tuple of kinds for a group.
    """

    kinds: tuple


class _Missing:
    """The class of ``MISSING``, an argument None for an array parameter."""

    def __repr__(self):
        return "None"


MISSING = _Missing()


def _enter_parameters(builder: LetBuilder, name: str, kind):
    """A parameter of ``builder`` for each type in ``kind``."""
    if isinstance(kind, tuple):
        return tuple(_enter_parameters(builder, f"{name}.{i}", part) for i, part in enumerate(kind))
    return None if kind is MISSING else builder.param(kind, name)


def _argument_value(builder: LetBuilder, param: Param, kind):
    """The value of a parameter inside its function."""
    if param.kind == STATIC:
        return kind
    value = _enter_parameters(builder, param.name, kind)
    if param.parts is None:
        return value
    pairs = zip(value, param.parts, strict=True)
    return tuple(Sizes(part) if inside == SHAPE else part for part, inside in pairs)


@frozen(eq=False)
class _Forward:
    """A lowered function: the values of its parameters, results and captured names."""

    function: ScriptFunction
    builder: LetBuilder
    given: tuple  # the values of the parameters
    results: tuple  # one for each result, each a value or a tuple of them
    captured: dict  # the captured values by name
    count: int  # the number of operands

    @classmethod
    def from_function(cls, function: ScriptFunction, spec: Spec, scripts: Mapping) -> "_Forward":
        """Lower ``function`` for arguments of these kinds."""
        builder = LetBuilder()
        arguments = tuple(map(partial(_argument_value, builder), function.params, spec.kinds))
        names = [param.name for param in function.params]
        emitter = ScriptLowering(
            builder, function, scripts, dict(zip(names, arguments, strict=True))
        )
        value, inner = emitter.run(), function.inner
        several = inner is not None and len(inner.params) > 1
        # if the inner function has one parameter, a tuple is one result with one gradient
        results = value if several and type(function.results) is Group else (value,)
        captured = {} if inner is None else {name: emitter.env[name] for name in inner.captured}
        return cls(function, builder, arguments, results, captured, len(builder.params))

    def context(self) -> list[Value]:
        """The arrays among the captured values."""
        result = []
        for value in self.captured.values():
            result += [leaf for leaf in leaves_of(plain_result(value)) if isinstance(leaf, Value)]
        return result

    def backward(self, scripts: Mapping) -> tuple[LetBuilder, ScriptLowering]:
        """The backward with parameters for the context and the gradients."""
        builder, inner = LetBuilder(), self.function.inner
        env = {name: parameters_for(builder, name, value) for name, value in self.captured.items()}
        for param, result in zip(inner.params, self.results, strict=True):
            env[param.name] = _enter_parameters(
                builder, param.name, _kinds_of(plain_result(result))
            )
        return builder, ScriptLowering(builder, inner, scripts, env)


def _kinds_of(result):
    """The types of the gradients of a result."""
    if isinstance(result, tuple):
        return tuple(map(_kinds_of, result))
    return strong_type(_type_of_result(result))  # cotangents are never weak


def _type_of_result(value) -> ArrayType | None:
    """The type of a result, which may be a number."""
    return value.type if isinstance(value, Value) else ArrayType(type(value))


def _checked_results(forward: _Forward) -> tuple:
    """The results. Raises LetirError for a result that is neither an array nor a number.

    None means a zero gradient; only a function without a backward may return it.
    """
    for leaf in leaves_of(plain_result(forward.results)):
        # a function without a backward may itself be a lifted backward
        if leaf is None and forward.function.inner is None:
            continue
        if not isinstance(leaf, Value) and type(leaf) not in PYTHON_NUMBERS:
            function = forward.function
            raise LetirError(
                f"{function.name}: its result {leaf!r} is neither an array nor a number\n"
                "  return arrays and numbers only\n"
                f"  at {function.source(function.results.at)}"
            )
    return plain_result(forward.results)


# ---- the form that scripts show ----


@frozen(eq=False)
class ClosedPrograms:
    """The two closed programs of a script: ``forward(*args) -> (*results, context)`` and
    ``backward(context, *gradients)``, None for a function without one.
    """

    forward: Lambda
    backward: Lambda | None


def close_function(function: ScriptFunction, spec: Spec, scripts: Mapping) -> ClosedPrograms:
    """The two programs of ``function`` for arguments of these kinds."""
    forward = _Forward.from_function(function, spec, scripts)
    results = _checked_results(forward)
    in_tree = _tree_of_arguments(plain_result(forward.given), function)
    if function.inner is None:
        (value,) = results
        return ClosedPrograms(_program_with_results(forward.builder, value, in_tree), None)
    context = tuple(forward.context())
    first = _program_with_results(forward.builder, (*results, context), in_tree)
    builder, emitter = forward.backward(scripts)
    gradients = plain_result(emitter.run())
    shapes = tuple(_shape_of_tree(plain_result(result)) for result in results)
    tree = Tree.from_pytree((((LEAF,) * len(context), *shapes), {}))
    return ClosedPrograms(first, _program_with_results(builder, gradients, tree))


def _shape_of_tree(value):
    """``LEAF`` for each leaf."""
    return tuple(map(_shape_of_tree, value)) if isinstance(value, tuple) else LEAF


def _program_with_results(builder: LetBuilder, value, in_tree: Tree | None) -> Lambda:
    """The program with these results and their nesting."""
    leaves, spec = leaves_of(value), Tree.from_pytree(_shape_of_tree(value))
    in_a_row = spec == Tree.from_pytree((LEAF,) * len(leaves)) and len(leaves) != 1
    out_tree = None if in_a_row or not isinstance(value, tuple) else spec
    return builder.build(leaves, in_tree, out_tree)


def _tree_of_arguments(arguments: tuple, function: ScriptFunction) -> Tree | None:
    """The nesting of the array arguments; None if they are flat."""
    if not any(param.kind == GROUP for param in function.params):
        return None
    arrays = [v for v, p in zip(arguments, function.params, strict=True) if p.kind != STATIC]
    return Tree.from_pytree((tuple(map(_shape_of_tree, arrays)), {}))


# ---- the form for operations ----


@frozen(eq=False)
class Rule:
    """The programs of a ``scripted`` bind; ``backward`` is None for a function without one.

    ``results``: the nesting of the first ``n_outs`` results of ``forward``.
    """

    forward: Lambda
    backward: Lambda | None
    context: tuple[int, ...]
    gradients: tuple[int, ...]
    n_outs: int
    results: Tree


def rule_of_function(function: ScriptFunction, spec: Spec, scripts: Mapping) -> Rule:
    """The rule of ``function`` for arguments of these kinds."""
    forward = _Forward.from_function(function, spec, scripts)
    results = _checked_results(forward)
    value = results if len(results) > 1 else results[0]
    tree = Tree.from_pytree(_shape_of_tree(value))
    outs = [forward.builder.enter(leaf) for leaf in leaves_of(value)]
    if function.inner is None:
        return Rule(forward.builder.build(outs), None, (), (), len(outs), tree)
    builder, emitter = forward.backward(scripts)
    context = forward.context()
    inside = builder.params[: len(context)]
    gradients = _fitted_gradients(forward, emitter, leaves_of(value))
    fn = dead_code(builder.build(gradients.values()))  # without the gradients that no operand takes
    used = {local for bind in fn.binds for local in bind.locals()} | set(fn.ret.locals())
    # only values that the backward reads are kept for it
    positions_used = [i for i, local in enumerate(inside) if local in used]
    cts = builder.params[len(context) :]
    backward = Lambda([*(inside[i] for i in positions_used), *cts], fn.binds, fn.ret)
    places = _Positions(forward.builder.params, outs)
    # called before ``build``, because it may add further results
    positions = tuple(places.position(context[i].arg) for i in positions_used)
    program = dead_code(forward.builder.build(places.results))
    return Rule(program, backward, positions, tuple(gradients), len(outs), tree)


class _Positions:
    """Positions among operands, then results; a value that is neither becomes a further result."""

    def __init__(self, params: list[Local], outs: list[Arg]):
        self.count, self.results = len(params), list(outs)
        self.positions: dict = {}
        for i, arg in enumerate((*params, *outs)):
            if type(arg) is Local:
                # an operand that is returned is captured as the operand
                self.positions.setdefault(arg, i)

    def position(self, local: Local) -> int:
        """The position of the value of ``local``."""
        result = self.positions.get(local)
        if result is None:
            result = self.positions[local] = self.count + len(self.results)
            self.results.append(local)
        return result


def _fitted_gradients(forward: _Forward, emitter: ScriptLowering, outs: list) -> dict[int, Value]:
    """The gradients by operand position, each of the type of its operand."""
    function, returned = forward.function, plain_result(emitter.run())
    gradients = returned if isinstance(returned, tuple) else (returned,)
    choices = Gradients(function.params)
    positions = choices.positions(len(gradients))
    if positions is None:
        inner = function.inner
        message = choices.message(inner.name, len(gradients))
        raise ShapeError(f"{message}\n  at {inner.source(inner.results.at)}")
    by_param = dict(zip(positions, gradients, strict=True))
    result: dict[int, Value] = {}
    operands = iter(range(forward.count))
    for i, (param, argument) in enumerate(zip(function.params, forward.given, strict=True)):
        if param.kind == STATIC:
            continue
        fit = _Fit(function, i, emitter.builder)
        operand_leaves = leaves_of(plain_result(argument))
        gradient_leaves = fit.aligned(by_param.get(i), len(operand_leaves))
        for operand, gradient in zip(operand_leaves, gradient_leaves, strict=True):
            if operand is None:
                continue
            place = next(operands)
            # a scalar gets no gradient [semantics.md G2]
            if param.kind != SCALAR and gradient is not None:
                fits = fit.gradient(gradient, operand.type)
                result |= {} if fits is None else {place: fits}
    return result


@frozen(eq=False)
class _Fit:
    """Converts a gradient to fit the parameter at ``position``, or raises an error."""

    function: ScriptFunction
    position: int
    builder: LetBuilder

    def aligned(self, gradient, count: int) -> list:
        """The gradients of the ``count`` leaves of the parameter."""
        if gradient is None:
            return [None] * count
        leaves = leaves_of(gradient)
        if len(leaves) != count:
            parts_text = f"{len(leaves)} parts"
            raise ShapeError(
                self.message(parts_text, f"{count}", "one for each array of the group")
            )
        return leaves

    def gradient(self, ct, aval: ArrayType | None) -> Value | None:
        """``ct`` in the dtype of ``aval``; None if such an operand has no gradient."""
        if aval is not None and not aval.inexact:
            return None
        if not isinstance(ct, Value):
            return self.number(ct, aval)
        if aval is None or ct.type is None:
            return ct
        if ct.shape != aval.shape:
            name = self.function.params[self.position].name
            remedy = f"sum it: .sum_to_size({name}.size())"
            raise ShapeError(self.message(ct.type, aval, remedy))
        if not ct.type.inexact:
            raise DTypeError(self.message(ct.type, aval, "return None where it is zero"))
        return ct if strong_type(ct.type) is strong_type(aval) else cast_cotangent(ct, aval.dtype)

    def number(self, ct, aval: ArrayType | None) -> Value:
        """A number as the gradient of a 0-d operand."""
        if type(ct) not in PYTHON_NUMBERS:
            raise DTypeError(self.message(repr(ct), aval, "a gradient is an array or None"))
        if aval is None or aval.shape != ():
            raise ShapeError(self.message(f"the number {ct}", aval, "return None where it is zero"))
        full = PRIMITIVES["full"]
        operands, attrs = full.prepare((), ct, aval.dtype)
        return self.builder.apply(full, operands, full.complete(attrs))

    def message(self, actual, kind, remedy: str) -> str:
        """The message for a gradient that does not fit."""
        function = self.function
        inner, param = function.inner, function.params[self.position]
        return (
            f"{function.name}: {inner.name!r} gave argument {self.position} ({param.name}) "
            f"a gradient of {actual}, expected {kind}\n"
            f"  at {inner.source(inner.results.at)}\n  {remedy}"
        )


def operands_of(values: tuple, function: ScriptFunction) -> list:
    """The operands among bound arguments: the leaves of non-static ones, without None."""
    result = []
    for value, param in zip(values, function.params, strict=True):
        if param.kind != STATIC:
            result += [leaf for leaf in flatten(value)[0] if leaf is not None]
    return result
