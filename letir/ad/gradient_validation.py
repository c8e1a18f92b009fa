"""``check_gradient``: checks that the two programs of a Gradient from a file fit each other."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from letir.ad.gradient_program import Gradient
from letir.ast.terms import Arg, Local
from letir.errors import ShapeError


def check_gradient(gradient: Gradient) -> Gradient:
    """Return ``gradient`` if its positions fit its two programs, whose parameters and results they
    connect. Raises ShapeError. The programs themselves are checked by ``check``.
    """
    f, df, real = gradient.f, gradient.df, gradient.f_real_outputs
    inputs, outputs = len(f.params), len(f.ret.args)
    if type(real) is not int or not 0 <= real <= outputs:
        raise ShapeError(
            f"f_real_outputs must be an int from 0 to {outputs}, the number of results of f, "
            f"found {_short_repr(real)}"
        )
    _check_positions("df_input_vjps", gradient.df_input_vjps, outputs)
    _check_positions("df_input_captured_inputs", gradient.df_input_captured_inputs, inputs)
    _check_positions("df_input_captured_outputs", gradient.df_input_captured_outputs, outputs)
    _check_positions("df_output_vjps", gradient.df_output_vjps, inputs)
    read: list[Arg] = [
        *map(f.ret.args.__getitem__, gradient.df_input_vjps),
        *map(f.params.__getitem__, gradient.df_input_captured_inputs),
        *map(f.ret.args.__getitem__, gradient.df_input_captured_outputs),
    ]
    if len(read) != len(df.params):
        raise ShapeError(
            f"df has {len(df.params)} parameters, but the fields of the Gradient list "
            f"{len(read)} values for them"
        )
    if len(df.ret.args) != len(gradient.df_output_vjps):
        count = len(gradient.df_output_vjps)
        raise ShapeError(
            f"df has {len(df.ret.args)} results, but df_output_vjps lists {count} arguments of f"
        )
    for i, (arg, param) in enumerate(zip(read, df.params, strict=True)):
        _check_type(f"parameter {i} of df", arg, param)
    tree: Any = gradient.out_tree
    if tree is not None and (tree.statics or tree.arrays != real):
        raise ShapeError(
            f"the results are nested as {tree}, which does not hold f_real_outputs = {real} arrays"
        )
    return gradient


def _check_positions(name: str, positions: Sequence, count: int) -> None:
    """Raise ShapeError unless these are increasing positions below ``count``."""
    is_positions = type(positions) is tuple and all(
        type(i) is int and 0 <= i < count for i in positions
    )
    if not is_positions or any(i >= j for i, j in pairwise(positions)):
        raise ShapeError(
            f"{name} is {_short_repr(positions)}, expected increasing positions below {count}"
        )


def _check_type(role: str, arg: Arg, param: Local) -> None:
    """Raise ShapeError unless a parameter of df has dtype and shape of the value in f."""
    if type(arg) is not Local:
        raise ShapeError(f"{role} stands for a result of f that is the constant {arg!r}")
    actual, expected = arg.type, param.type
    if actual is None or expected is None:
        return
    if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
        raise ShapeError(f"{role} has the type {expected}, but its value in f has {actual}")


def _short_repr(value: Any) -> str:
    """A value in a message, of bounded length."""
    text = repr(value) if type(value) is not int or abs(value) < 1 << 64 else "a large number"
    return text if len(text) <= 80 else f"{text[:77]}..."
