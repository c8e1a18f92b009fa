"""``eval_shape``: the shapes and dtypes of a function's results, without their values."""

from collections.abc import Callable
from typing import Any

from letir.ast import entry_point
from letir.ast.types import ShapeDtype
from letir.errors import TraceError
from letir.tracing.entry import DISCARD_WRITES, record
from letir.tracing.source_locations import at_user
from letir.tracing.trace_state import ABSTRACT
from letir.transforms.program_call import ProgramCall, as_program


@entry_point
def eval_shape(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The results of ``f(*args, **kwargs)`` as ``ShapeDtype``s, without their values.

    Arguments are pytrees of ``ShapeDtype``s, whose sizes may be symbolic, and of arrays and
    numbers, of which only the types are used: no operation on them is computed. The result is
    nested like the result of ``f``; Python numbers in it are weak. Raises TraceError where Python
    decides on a value, and for a result whose shape depends on values.

    >>> import numpy as np
    >>> from letir import ShapeDtype
    >>> weights = ShapeDtype((64, 10), "float32")
    >>> eval_shape(lambda w, x: (x @ w, 1), weights, ShapeDtype(("n", 64), "float32"))
    (ShapeDtype(type=float32[n, 10]), ShapeDtype(type=int64*[]))
    """
    fn = record(as_program(f), args, kwargs, ABSTRACT, DISCARD_WRITES).fn
    result = []
    for i, arg in enumerate(fn.ret.args):
        if arg.type is None:
            raise TraceError(
                f"eval_shape: the shape of result {i} depends on values{at_user()}\n"
                "  call the function, or return an array of a known shape"
            )
        result.append(ShapeDtype(arg.type.shape, arg.type.dtype, arg.type.weak))
    return ProgramCall(fn, fn.in_tree, []).out_tree.unflatten(result)
