"""``linear_transpose``: the transpose of a linear program, computed by the reverse transform."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

from letir.ad.differentiation import differentiate
from letir.ad.gradient_program import Gradient
from letir.ad.linearity import Linearity
from letir.ad.symbolic_zeros import zeros_of_type
from letir.ast import LATE_BOUND, entry_point
from letir.ast.builder import LetBuilder
from letir.ast.derivative_types import strong_type
from letir.ast.process_state import paused_gc
from letir.ast.pytrees import Tree
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.errors import DTypeError, ShapeError
from letir.eval.evaluator import run_flat
from letir.ops.shape.shape_and_creation import zeros
from letir.passes.dead_code_elimination import dead_code
from letir.transforms.directions import as_direction
from letir.transforms.gradients import check_inputs
from letir.transforms.program_call import (
    ProgramCall,
    arguments_of,
    as_program,
    copy_shared_results,
    record_call,
    tree_of_arguments,
)

_CALLER = "linear_transpose"
_REMEDY = "take letir.linearize for another function, or leave the argument out of argnums"


@overload
def linear_transpose(
    f: Lambda | Gradient, *examples: Any, argnums: int | Sequence[int] | None = None
) -> Lambda: ...
@overload
def linear_transpose(
    f: Callable[..., Any], *examples: Any, argnums: int | Sequence[int] | None = None
) -> Callable[..., Any]: ...
@entry_point
def linear_transpose(
    f: Any, *examples: Any, argnums: int | Sequence[int] | None = None
) -> Callable[..., Any]:
    """The transpose of a function that is linear in the arguments ``argnums`` (default: all).

    ``examples``: the arguments, or their types as ``ShapeDtype``; a Lambda needs none and gives a
    Lambda. The transpose takes the cotangent of the result, nested as the result, then the
    arguments in which ``f`` is not linear; it returns a tuple with the cotangents of the other
    arguments: <ct, f(x)> = <transpose(ct), x>. Unlike ``vjp`` it needs no primals. Raises
    LetirError with the first operation that is not linear, and its line.

    >>> import numpy as np
    >>> turned = linear_transpose(lambda x: 2 * np.cumsum(x), np.zeros(3))
    >>> turned(np.array([1.0, 0.0, 1.0]))
    (array([4., 2., 2.]),)
    >>> scaled = linear_transpose(lambda x, w: w * x, 1.0, 3.0, argnums=0)
    >>> scaled(1.0, 3.0)  # a cotangent, and w
    (np.float64(3.0),)
    """
    f = as_program(f)
    if isinstance(f, Lambda):
        return _Transpose(ProgramCall(f, tree_of_arguments(f), []), argnums).program
    call = record_call(f, examples, {})
    transpose = _Transpose(call, argnums)
    lifted = call.leaves[call.tree.arrays :]  # traced values that f closes over

    @entry_point
    @functools.wraps(f)
    def transposed(*args):
        return transpose(args, lifted)

    return transposed


class _Transpose:
    """The transposed program of a call, and the nesting of its arguments."""

    def __init__(self, call: ProgramCall, argnums: int | Sequence[int] | None):
        args, kwargs = call.tree.example()
        chosen = tuple(range(len(args))) if argnums is None else argnums
        chosen = (chosen,) if isinstance(chosen, int) else tuple(chosen)
        positions, self.cotangents = arguments_of(call.tree, chosen)
        check_inputs(call.fn, positions, _CALLER)
        flat = transposed_program(call.fn, positions)
        linear = {n % len(args) for n in chosen}
        others = [arg for i, arg in enumerate(args) if i not in linear]
        self.out = Tree.from_pytree(call.out_tree.example())
        self.others = Tree.from_pytree(((*others,), kwargs))
        arguments = Tree.from_pytree(((self.out.example(), *others), kwargs))
        # none with lifted parameters
        in_tree = arguments if len(flat.params) == arguments.arrays else None
        self.program = Lambda(flat.params, flat.binds, flat.ret, in_tree, self.cotangents)

    def __call__(self, args: tuple, lifted: list) -> tuple:
        """The cotangents of linear arguments; ``args``: cotangent of the result, other arguments.

        ``lifted``: the traced values that the function closes over.
        """
        if not args:
            raise ShapeError(
                f"{_CALLER}: the transpose takes the cotangent of the result first\n"
                "  pass one array of the type of the result"
            )
        count = self.out.arrays
        cts = [
            as_direction(ct, param.type, "cotangent")
            for ct, param in zip(
                self.out.leaves_of(args[0], _CALLER), self.program.params[:count], strict=True
            )
        ]
        others = self.others.leaves_of((args[1:], {}), _CALLER)
        return self.cotangents.unflatten(
            copy_shared_results(run_flat(self.program, [*cts, *others, *lifted]))
        )


@paused_gc()
def transposed_program(fn: Lambda, positions: list[int]) -> Lambda:
    """A program (cotangents of results, other parameters) -> cotangents of ``positions``.

    Linear in the number of binds.
    """
    inputs = [fn.params[i] for i in positions]
    linearity = Linearity(fn, inputs, _CALLER, _REMEDY)
    fn, chosen = linearity.fn, set(positions)
    defined = [arg in linearity.linear for arg in fn.ret.args]  # other results are always zero
    gradient = differentiate(fn, [i in chosen for i in range(len(fn.params))], defined=defined)
    count = len(gradient.df_input_vjps)
    vjps = dict(zip(gradient.df_input_vjps, gradient.df.params, strict=False))
    captured = gradient.df.params[count:]
    # captured values are locals of fn that do not depend on the linear arguments
    primal = dead_code(Lambda(fn.params, gradient.f.binds, Ret(captured)))
    builder = LetBuilder()
    # unused cotangents are parameters too
    cts = [vjps.get(i) or Local(strong_type(arg.type)) for i, arg in enumerate(fn.ret.args)]
    others = [param for i, param in enumerate(fn.params) if i not in chosen]
    builder.params = [*cts, *others]
    builder.binds = [*_stand_ins(primal, inputs), *primal.binds, *gradient.df.binds]
    by_input = dict(zip(gradient.df_output_vjps, gradient.df.ret.args, strict=True))
    return builder.build(
        by_input[i] if type(by_input.get(i)) is Local else zeros_of_type(builder, fn.params[i])
        for i in positions
    )


def _stand_ins(primal: Lambda, inputs: Sequence[Local]) -> list[Bind]:
    """Zeros in place of the linear arguments that ``primal`` reads.

    It reads them for their sizes, or in a loop that also computes values that do not depend on
    them. Raises DTypeError if their sizes are unknown.
    """
    terms: tuple[Bind | Ret, ...] = (*primal.binds, primal.ret)
    read = {local for term in terms for local in term.locals()}
    result = []
    for local in inputs:
        if local in read:
            if not has_static_shape(local.type):
                raise DTypeError(
                    f"{_CALLER}: the sizes of {local!r} are not known\n"
                    "  give the program types with known sizes: letir.retype"
                )
            attrs = {"shape": local.type.shape, "dtype": local.type.dtype}
            result.append(Bind((local,), zeros, (), zeros.complete(attrs)))
    return result


LATE_BOUND["transposed_program"] = transposed_program
