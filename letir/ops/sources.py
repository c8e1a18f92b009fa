"""The forms of operations in NumPy where their records alone do not tell them: the ``source`` that
``makers.op`` gives to records, for ``letir.to_source``.

By default an operation is its symbol, or its NumPy function with the attributes as keywords.
"""

from collections.abc import Callable

from letir.ops import (
    written_arrays,
    written_control,
    written_loops,
    written_memory,
    written_random,
)

SOURCES: dict[str, Callable] = {
    "neg": written_arrays.prefix("-"),
    "invert": written_arrays.prefix("~"),
    "cast": written_arrays.cast,
    "weaken": written_arrays.weaken,
    "stop_gradient": written_arrays.itself,
    "barrier": written_arrays.itself,
    **dict.fromkeys(("sum", "prod", "mean", "max", "min", "any", "all"), written_arrays.reduction),
    "size": written_arrays.size,
    "sum_to_size": written_arrays.sum_to_size,
    "broadcast_to": written_arrays.broadcast_to,
    "reshape": written_arrays.reshape,
    "transpose": written_arrays.transpose,
    "zeros": written_arrays.made("np.zeros"),
    "ones": written_arrays.made("np.ones"),
    "full": written_arrays.full,
    "eye": written_arrays.eye,
    "arange": written_arrays.arange,
    "constant": written_arrays.constant,
    "concatenate": written_arrays.listed,
    "stack": written_arrays.listed,
    "split": written_arrays.split,
    "pad": written_arrays.pad,
    "einsum": written_arrays.einsum,
    "index": written_arrays.index,
    "index_set": written_arrays.index_set,
    "index_add": written_arrays.index_add,
    "random_key": written_random.key,
    "random_split": written_random.split,
    "random_fold_in": written_random.fold_in,
    "random_draw": written_random.draw,
    "random_places": written_random.places,
    "guard": written_control.guard,
    "guard_order": written_memory.guard_order,
    "write_back": written_memory.write_back,
    "complex_of": written_memory.complex_of,
    "assemble": written_arrays.assemble,
    "looped": written_control.looped,
    "scan": written_loops.scan,
    "scripted": written_control.forward,
    "custom_vjp": written_control.first_results,
    "checkpoint": written_control.body,
    "custom_jvp": written_control.primal,
    "autograd_add": written_control.autograd_add,
    "instantiate": written_control.instantiate,
    "grad_of": written_control.step,
    "when_defined": written_control.step,
}
