"""The forms of operations in NumPy where their records alone do not tell them: the ``source`` that
``makers.op`` gives to records, for ``letir.to_source``.

By default an operation is its symbol, or its NumPy function with the attributes as keywords.

The ``source`` of operations that NumPy lacks: the function that computes them, as it is.
"""

import inspect
from collections.abc import Callable

from letir.ops.as_numpy import argument_writes, arrays, control, loops, random

SOURCES: dict[str, Callable] = {
    "neg": arrays.prefix("-"),
    "invert": arrays.prefix("~"),
    "cast": arrays.cast,
    "weaken": arrays.weaken,
    "stop_gradient": arrays.itself,
    "barrier": arrays.itself,
    **dict.fromkeys(("sum", "prod", "mean", "max", "min", "any", "all"), arrays.reduction),
    "size": arrays.size,
    "sum_to_size": arrays.sum_to_size,
    "broadcast_to": arrays.broadcast_to,
    "ravel": arrays.ravel,
    "reshape": arrays.reshape,
    "transpose": arrays.transpose,
    "zeros": arrays.made("np.zeros"),
    "ones": arrays.made("np.ones"),
    "full": arrays.full,
    "eye": arrays.eye,
    "arange": arrays.arange,
    "constant": arrays.constant,
    "concatenate": arrays.listed,
    "stack": arrays.listed,
    "split": arrays.split,
    "pad": arrays.pad,
    "einsum": arrays.einsum,
    "index": arrays.index,
    "index_set": arrays.index_set,
    "index_add": arrays.index_add,
    "random_key": random.key,
    "random_split": random.split,
    "random_fold_in": random.fold_in,
    "random_draw": random.draw,
    "random_places": random.places,
    "guard": control.guard,
    "guard_order": argument_writes.guard_order,
    "write_back": argument_writes.write_back,
    "complex_of": argument_writes.complex_of,
    "assemble": arrays.assemble,
    "looped": control.looped,
    "scan": loops.scan,
    "cond": loops.cond,
    "switch": loops.switch,
    "while_loop": loops.while_loop,
    "while_scan": loops.while_scan,
    "fori_loop": loops.fori_loop,
    "scripted": control.forward,
    "custom_vjp": control.first_results,
    "checkpoint": control.body,
    "custom_jvp": control.primal,
    "autograd_add": control.autograd_add,
    "instantiate": control.instantiate,
    "grad_of": control.step,
    "when_defined": control.step,
}


def itself(function: Callable, *others: Callable) -> Callable:
    """A call of ``function(xp, *operands, **attrs)``, which stands beside the source with NumPy for
    ``xp``, and with it the ``others`` that it calls.
    """

    def source(write, *operands, **attrs):
        text = _numpy_text(function)
        for other in others:
            # under another name if the source has one like it already
            text = text.replace(f"{other.__name__}(", f"{write.helper(_numpy_text(other))}(")
        return write.call(write.helper(text), *operands, **attrs)

    return source


def _numpy_text(function: Callable) -> str:
    """The text of a function of an array module, as one of NumPy."""
    return inspect.getsource(function).replace("(xp, ", "(").replace("xp.", "np.")
