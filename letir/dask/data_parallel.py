"""``value_and_grad`` and ``grad`` of a loss whose data are Dask arrays."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import dask
import numpy as np

from letir.ast import entry_point
from letir.ast.pytrees import flatten
from letir.ast.signatures import P, R
from letir.errors import DTypeError
from letir.eval.array_modules import is_lazy
from letir.executor.jit_api import jit
from letir.transforms import gradients


@entry_point
def value_and_grad(
    loss: Callable[P, R], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[P, tuple[R, Any]]:
    """``letir.value_and_grad`` of a loss of Dask arrays, computed on their blocks.

    ``loss(params, *data)`` is recorded once for each combination of argument types. Each block is
    computed where its data are, by threads, processes or the workers of a ``distributed.Client``,
    and sums over blocks are added in a tree: equal calls give equal results for the same chunks.
    The result is (value, gradient) of the loss of the whole arrays, as NumPy arrays; ``params`` are
    NumPy arrays too. Raises LetirError for an operation that mixes blocks and that Dask cannot
    compute, DTypeError if no argument is a Dask array. See docs/dask.md.

    >>> import dask.array as da
    >>> x = da.arange(6.0, chunks=2)
    >>> value_and_grad(lambda w, x: ((w * x) ** 2).sum())(2.0, x)
    (np.float64(220.0), np.float64(220.0))
    """
    return _with_computed_results(
        gradients.value_and_grad(loss, argnums, has_aux=has_aux), loss, "value_and_grad"
    )


@entry_point
def grad(
    loss: Callable[P, Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[P, Any]:
    """``letir.grad`` of a loss of Dask arrays; see ``value_and_grad``.

    >>> import dask.array as da
    >>> grad(lambda w, x: (w * x).sum())(2.0, da.arange(6.0, chunks=2))
    np.float64(15.0)
    """
    return _with_computed_results(gradients.grad(loss, argnums, has_aux=has_aux), loss, "grad")


def _with_computed_results(gradient: Callable, loss: Callable, caller: str) -> Callable:
    """``gradient``, jitted, with its results computed."""
    # with a symbolic number of rows, a block would take several tasks
    jitted = jit(gradient, static_shapes=True)

    @functools.wraps(loss)
    @entry_point
    def computed(*args: Any, **kwargs: Any) -> Any:
        if not any(map(is_lazy, flatten((args, kwargs))[0])):
            raise DTypeError(
                f"letir.dask.{caller}: none of the arguments is a Dask array\n"
                f"  pass the data as Dask arrays, or use letir.{caller}"
            )
        leaves, spec = flatten(jitted(*args, **kwargs))
        # a sum is a NumPy scalar, as without Dask
        return spec.unflatten([np.asarray(x)[()] for x in dask.compute(*leaves)])

    return computed
