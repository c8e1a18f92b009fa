"""grad, value_and_grad, vjp, jvp and linearize, of Lambdas and of Python functions.

A Lambda gives a Lambda. A function gives a function, which records it at its arguments, transforms the program, and
runs the result, or inlines it where the arguments belong to a trace that is under way.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np
from attrs import frozen

from letir.ad.forward import jvp_program, linear_program
from letir.ad.gradient import zeros_for
from letir.ad.reverse import differentiate
from letir.ast.builder import LetBuilder
from letir.ast.collecting import paused_gc
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.ast.trees import LEAF, Tree, flatten
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError
from letir.eval.arguments import flat_arguments
from letir.eval.arrays import array_module, type_of
from letir.eval.evaluator import run_flat
from letir.ops.sizes import ones, size, zeros
from letir.passes.cleanup import dead_code
from letir.tracing.recorder import LAZY
from letir.tracing.recording import mark_static, record


@frozen(eq=False)
class Call:
    """A program at some arguments: ``leaves`` are its array arguments, ``tree`` says how the user nested them."""

    fn: Lambda
    tree: Tree
    leaves: list

    @property
    def out_tree(self) -> Tree:
        """How its results nest."""
        return self.fn.out_tree or tree_of_results(len(self.fn.ret.args))


def called(f: Callable, args: tuple, kwargs: dict) -> Call:
    """``f`` recorded at these arguments; a Lambda as it is."""
    if isinstance(f, Lambda):
        return Call(f, tree_of_arguments(f), flat_arguments(f, args, kwargs))
    recording = record(f, *mark_static(f, args, kwargs, (), ()), LAZY)
    leaves = recording.tree.leaves_of((args, kwargs), "differentiating")
    return Call(recording.fn, recording.tree, [*leaves, *recording.lifted])


def tree_of_arguments(fn: Lambda) -> Tree:
    """How the arguments of ``fn`` nest, also where they are arrays in a row."""
    return fn.in_tree or Tree.of(((LEAF,) * len(fn.params), {}))


def tree_of_results(count: int) -> Tree:
    """One result, or a tuple of them."""
    return Tree.of(LEAF if count == 1 else (LEAF,) * count)


def arguments_of(tree: Tree, argnums: int | Sequence[int]) -> tuple[list[int], Tree]:
    """(parameter positions, tree) of the positional arguments ``argnums``: what a gradient consists of."""
    args, _ = tree.nest(range(tree.arrays))
    one = isinstance(argnums, int)
    for n in (argnums,) if one else argnums:
        if not -len(args) <= n < len(args):
            raise ShapeError(f"argnums: there is no positional argument {n} among {len(args)}")
    chosen = args[argnums] if one else tuple(args[n] for n in argnums)
    positions, spec = flatten(chosen)
    return positions, Tree(spec)


# ---- grad and value_and_grad ----


def grad(f: Callable, argnums: int | Sequence[int] = 0, *, has_aux: bool = False, holomorphic: bool = False) -> Callable:
    """The gradient of a scalar function ``f`` by the positional arguments ``argnums``, nested as these are.

    A Lambda gives a Lambda, a function a function. With ``has_aux`` f returns (value, aux) and the result is
    (gradient, aux). For a complex argument z = x + iy it is df/dx - i df/dy (the convention of JAX and autograd); a
    complex result needs ``holomorphic``. Raises DTypeError for integer arguments, ShapeError for a result that is
    not a scalar.

    >>> grad(lambda x: (x**3).sum())(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    return _gradient(f, argnums, has_aux, holomorphic, with_value=False)


def value_and_grad(
    f: Callable, argnums: int | Sequence[int] = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Callable:
    """As ``grad``, with the value: (value, gradient), or ((value, aux), gradient) with ``has_aux``.

    >>> value_and_grad(lambda x: x * x)(3.0)
    (9.0, np.float64(6.0))
    """
    return _gradient(f, argnums, has_aux, holomorphic, with_value=True)


def _gradient(f, argnums, has_aux: bool, holomorphic: bool, with_value: bool) -> Callable:
    def program(call: Call) -> Lambda:
        positions, tree = arguments_of(call.tree, argnums)
        check_inputs(call.fn, positions)
        check_result(call.fn, holomorphic)
        flat = gradient_program(call.fn, positions, with_value)
        outs = nested_outputs(example(call.out_tree), example(tree), has_aux, with_value)
        return Lambda(flat.params, flat.binds, flat.ret, call.fn.in_tree, outs)

    if isinstance(f, Lambda):
        return program(Call(f, tree_of_arguments(f), []))

    @functools.wraps(f)
    def gradient(*args, **kwargs):
        call = called(f, args, kwargs)
        fn = program(call)
        return (fn.out_tree or tree_of_results(len(fn.ret.args))).unflatten(separate(run_flat(fn, call.leaves)))

    return gradient


def separate(results: tuple) -> list:
    """The results, each an array that its owner may write to.

    Rules hand one cotangent to several operands, and broadcasting gives read-only views.
    """
    seen: set[int] = set()
    found = []
    for array in results:
        if isinstance(array, np.ndarray) and (id(array) in seen or not array.flags.writeable):
            array = array.copy()
        seen.add(id(array))
        found.append(array)
    return found


def example(tree: Tree):
    """The nesting with ``LEAF`` for every leaf."""
    return tree.unflatten([LEAF] * tree.spec.num_leaves)


def nested_outputs(out, gradients, has_aux: bool, with_value: bool) -> Tree | None:
    """How value, gradients and aux nest; None for one array or arrays in a row."""
    if has_aux and not (isinstance(out, tuple) and len(out) == 2):
        raise ShapeError("has_aux: the function must return (value, aux)")
    first = out if not has_aux else out[0]
    if first is not LEAF:
        found = Tree.of(out).text
        raise ShapeError(f"grad needs a function that returns one scalar, found {found}; for aux results see has_aux")
    nested = (out, gradients) if with_value else (gradients, out[1]) if has_aux else gradients
    tree = Tree.of(nested)
    return None if tree == tree_of_results(tree.spec.num_leaves) else tree


def check_inputs(fn: Lambda, positions: list[int]) -> None:
    """Raise DTypeError for an argument that is not floating or complex."""
    for i in positions:
        kind = fn.params[i].type
        if kind is not None and not kind.inexact:
            name = fn.params[i].name or f"argument {i}"
            remedy = "pass a float, 3.0 instead of 3," if kind.weak else "convert it with .astype(float),"
            raise DTypeError(f"grad: {name} is {kind}, which has no derivative\n  {remedy} or leave it out of argnums")


def check_result(fn: Lambda, holomorphic: bool) -> None:
    """Raise unless the first result is a real scalar, or a complex one of a holomorphic function."""
    kind = fn.ret.args[0].type if fn.ret.args else None
    if not isinstance(kind, ArrayType):
        return
    if kind.shape != ():
        raise ShapeError(f"grad needs a scalar, the function returns {kind}\n  sum it, or use letir.vjp")
    if kind.dtype.kind == "c" and not holomorphic:
        raise DTypeError(f"grad: the function returns {kind}\n  take .real or abs, or say holomorphic=True")
    if not kind.inexact:
        raise DTypeError(f"grad: the function returns {kind}, which has no derivative\n  return a floating number")


@paused_gc()
def gradient_program(fn: Lambda, positions: list[int], with_value: bool) -> Lambda:
    """The results of ``fn`` and the gradients at ``positions`` of the first, or these and the further results.

    The gradient program reads the locals of ``fn`` by their own names, so that its binds follow as they are.
    """
    wanted = set(positions)
    defined = [i == 0 for i in range(len(fn.ret.args))]
    gradient = differentiate(fn, [i in wanted for i in range(len(fn.params))], defined=defined)
    count = len(gradient.df_input_vjps)
    cts, captured = gradient.df.params[:count], gradient.df.params[count:]
    primal = fn if with_value else dead_code(Lambda(fn.params, fn.binds, Ret((*captured, *fn.ret.args[1:]))))
    builder = LetBuilder()
    builder.params, builder.binds = list(fn.params), list(primal.binds)
    for ct in cts:
        attrs = ones.complete({"shape": (), "dtype": np.dtype(float) if ct.type is None else ct.type.dtype})
        builder.binds.append(Bind((ct,), ones, (), attrs))
    builder.binds += gradient.df.binds
    found = dict(zip(gradient.df_output_vjps, gradient.df.ret.args, strict=True))
    gradients = [found[i] if type(found.get(i)) is Local else zero(builder, fn.params[i]) for i in positions]
    return builder.build([*fn.ret.args, *gradients] if with_value else [*gradients, *fn.ret.args[1:]])


def zero(builder: LetBuilder, param: Local) -> Local:
    """Zeros of the type of a parameter."""
    kind = param.type
    if kind is not None and all(type(n) is int for n in kind.shape):
        return builder.emit(zeros, (), zeros.complete({"shape": kind.shape, "dtype": kind.dtype}))[0]
    (shape_of,) = builder.emit(size, (param,))
    shape, dtype = (None, np.dtype(float)) if kind is None else (kind.shape, kind.dtype)
    return builder.emit(zeros, (shape_of,), zeros.complete({"shape": shape, "dtype": dtype}))[0]


# ---- vjp, jvp, linearize ----


@frozen(eq=False)
class LinearMap:
    """What ``vjp`` and ``linearize`` return beside the results: a linear function with its ``program``.

    The program's parameters are the flattened arguments of the call, then the captured primal values.
    """

    program: Lambda
    captured: tuple
    flat: Callable  # nested arguments -> leaves
    nested: Callable  # leaves -> nested results

    def __call__(self, *args):
        return self.nested(separate(run_flat(self.program, [*self.flat(args), *self.captured])))


def vjp(f: Callable, *primals, has_aux: bool = False):
    """(f(*primals), pull): ``pull(ct)`` gives the cotangents of the primals, a tuple with one entry for each.

    ``ct`` nests as the result. With ``has_aux``, f returns (out, aux) and the result is (out, pull, aux). A primal
    that is no floating array has the cotangent None. ``pull.program`` is the Lambda that ``pull`` runs.

    >>> out, pull = vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> out, pull(1.0)
    (12.0, (np.float64(4.0), np.float64(3.0)))
    """
    call = called(f, primals, {})
    count = len(call.fn.ret.args)
    out_tree = Tree.of(example(call.out_tree)[0]) if has_aux else call.out_tree
    gradient = differentiate(call.fn, defined=[i < out_tree.arrays for i in range(count)])
    inputs = list(call.leaves)
    results = run_flat(gradient.f, call.leaves)
    captured = [inputs[i] for i in gradient.df_input_captured_inputs]
    captured += [results[i] for i in gradient.df_input_captured_outputs]
    xp = array_module(inputs)

    def flat(args) -> list:
        (ct,) = args
        leaves = out_tree.leaves_of(ct, "pull")
        return [as_direction(leaves[i], gradient.f.ret.args[i].type, "cotangent") for i in gradient.df_input_vjps]

    def nested(cts) -> tuple:
        found = dict(zip(gradient.df_output_vjps, cts, strict=True))
        leaves = [zeros_for(p, found[i], xp) if i in found else None for i, p in enumerate(call.fn.params)]
        return call.tree.nest(leaves)[0]

    pull = LinearMap(gradient.df, tuple(captured), flat, nested)
    out = call.out_tree.unflatten(results[:count])
    return (out[0], pull, out[1]) if has_aux else (out, pull)


def as_direction(value, kind: ArrayType | None, what: str):
    """A cotangent or tangent as the type ``kind`` wants it. Raises for another shape or dtype."""
    if kind is None or not hasattr(value, "dtype"):
        value = np.asarray(value, None if kind is None else kind.dtype)[()]
    found = type_of(value) if not hasattr(value, "emitter") else value.type
    if kind is None or (found.dtype, found.shape) == (kind.dtype, kind.shape):
        return value
    error = ShapeError if found.shape != kind.shape else DTypeError
    raise error(f"a {what} of type {ArrayType(kind.dtype, kind.shape)} is expected, found {found}")


def jvp(f: Callable, primals: tuple, tangents: tuple):
    """(f(*primals), its tangent) for tangents that nest as the primals; None stands for a zero.

    A result that does not depend on the primals, or is not floating, has zeros as its tangent.

    >>> jvp(lambda x: x**2, (3.0,), (1.0,))
    (9.0, np.float64(6.0))
    """
    call = called(f, tuple(primals), {})
    inputs, directions = directions_of(call, tuple(primals), tuple(tangents))
    program, outputs = jvp_program(call.fn, inputs)
    xp = array_module(call.leaves)
    results = run_flat(dead_code(program), [*call.leaves, *directions])
    count = len(call.fn.ret.args)
    found = dict(zip(outputs, results[count:], strict=True))
    out = call.out_tree.unflatten(results[:count])
    return out, call.out_tree.unflatten([tangent_of(r, found.get(i), xp) for i, r in enumerate(results[:count])])


def tangent_of(result, tangent, xp):
    """The tangent of a result; zeros of its shape, in its dtype if that is floating, where there is none."""
    if tangent is not None:
        return tangent
    if hasattr(result, "emitter"):
        return result * 0
    dtype = result.dtype if hasattr(result, "dtype") and result.dtype.kind in "fc" else float
    return xp.zeros(np.shape(result), dtype)[()]


def directions_of(call: Call, primals: tuple, tangents: tuple) -> tuple[list[int], list]:
    """(parameter positions, tangents) of the floating primals. Raises where tangents do not fit."""
    if len(primals) != len(tangents):
        raise ShapeError(f"jvp: {len(primals)} primals, {len(tangents)} tangents")
    positions, _ = arguments_of(call.tree, tuple(range(len(primals))))
    leaves = call.tree.leaves_of((none_filled(tangents, primals), {}), "jvp")
    inputs, directions = [], []
    for i, leaf in zip(positions, leaves, strict=True):
        kind = call.fn.params[i].type
        if leaf is not MISSING and (kind is None or kind.inexact):
            inputs.append(i)
            directions.append(as_direction(leaf, kind, "tangent"))
    return inputs, directions


class Missing:
    """The type of ``MISSING``, a tangent that was not given."""


MISSING = Missing()


def none_filled(tangents: tuple, primals: tuple) -> tuple:
    """The tangents with a tree of ``MISSING`` for a primal whose tangent is None."""
    filled = []
    for tangent, primal in zip(tangents, primals, strict=True):
        leaves, spec = flatten(primal)
        filled.append(spec.unflatten([MISSING] * len(leaves)) if tangent is None else tangent)
    return tuple(filled)


def linearize(f: Callable, *primals):
    """(f(*primals), lin): ``lin(*tangents)`` gives the tangent of the result, without evaluating ``f`` again.

    ``lin.program`` is the linear Lambda that it runs.

    >>> out, lin = linearize(lambda x: x**2, 3.0)
    >>> out, lin(1.0), lin(2.0)
    (9.0, np.float64(6.0), np.float64(12.0))
    """
    call = called(f, primals, {})
    inputs = [i for i, p in enumerate(call.fn.params) if p.type is None or p.type.inexact]
    positions, _ = arguments_of(call.tree, tuple(range(len(primals))))
    inputs = [i for i in inputs if i in set(positions)]
    pair = linear_program(call.fn, inputs)
    arguments = list(call.leaves)
    results = run_flat(pair.f, call.leaves)
    count, xp = len(call.fn.ret.args), array_module(arguments)

    def flat(tangents) -> list:
        given, directions = directions_of(call, primals, tangents)
        found = dict(zip(given, directions, strict=True))
        return [found.get(i, MISSING) for i in inputs]

    def nested(tangents):
        found = dict(zip(pair.outputs, tangents, strict=True))
        return call.out_tree.unflatten([tangent_of(r, found.get(i), xp) for i, r in enumerate(results[:count])])

    captured = tuple(pair.captured(arguments, results))
    return call.out_tree.unflatten(results[:count]), LinearMap(pair.linear, captured, flat, nested)

