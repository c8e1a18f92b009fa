"""``weighted_sum``: a program with one number as its result, which can be differentiated."""

from typing import Any

from letir.ast import entry_point
from letir.ast.terms import Lambda
from letir.ast.types import ShapeDtype
from letir.errors import ExportError
from letir.eval.evaluator import run_flat
from letir.onnx.exporting.value_names import output_names_of
from letir.tracing.entry import trace


@entry_point
def weighted_sum(program: Lambda) -> Lambda:
    """A program for the sum of the results times weights, its further parameters ``ct_<result>``.

    Its gradient is the vector-Jacobian product of ``program``. With weights that are 1 for one
    score and 0 for all others, it is the gradient of that score.

    >>> import numpy as np
    >>> import letir as lt
    >>> f = weighted_sum(lt.trace(np.sin, np.zeros(3)))
    >>> [param.name for param in f.params]
    ['x', 'ct_output']
    >>> lt.grad(f)(np.zeros(3), np.array([0.0, 1.0, 0.0]))
    array([0., 1., 0.])
    """
    avals = [x.type for x in (*program.params, *program.ret.args)]
    if any(aval is None for aval in avals):
        raise ExportError("weighted_sum: the type of a parameter or a result is not known")
    count = len(program.params)

    def total(*arrays: Any) -> Any:
        results = run_flat(program, list(arrays[:count]))
        pairs = zip(results, arrays[count:], strict=True)
        return sum((x * ct).sum() for x, ct in pairs if x.dtype.kind in "fc")

    result = trace(total, *[ShapeDtype(aval.shape, aval.dtype) for aval in avals])
    names = [param.name for param in program.params]
    names += [f"ct_{name}" for name in output_names_of(program, None, ())]
    for param, name in zip(result.params, names, strict=True):
        param.name = name
    return result
