"""Groups of binds that act on rows, as Dask arrays: one task a block, a tree of partial results."""

import functools
import operator
import uuid
from collections.abc import Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph

from letir.ast.bounded_cache import BoundedCache
from letir.ast.types import ArrayType
from letir.dask.blocks import as_operand, meta_of
from letir.dask.row_partition import RowProgram
from letir.dask.row_rule import Partial
from letir.executor.compiled import Compiled, compile
from letir.kernels.threads import one_thread

_compiled = BoundedCache(1 << 10)  # (token of a group, number of rows) -> Compiled
_SPLIT_EVERY = 8  # partial results that one task of the tree joins


def rows_by_task(group: RowProgram, operands: Sequence, avals: Sequence[ArrayType]) -> tuple:
    """The results of a group as Dask arrays; an array of a partial result has one block."""
    split = [x for x, axis in zip(operands, group.params, strict=False) if axis is not None]
    axes = [axis for axis in group.params[: len(split)] if axis is not None]
    arrays = _split_alike(split, axes)
    whole = dask.delayed(_pack_whole_operands, pure=False)(
        group, *map(_in_graph, operands[len(split) :])
    )
    rank = max([array.ndim for array in arrays])
    first: Any = group.results[0]
    is_one = len(avals) == 1 and type(first) is int and avals[0].ndim == rank
    # Not a contraction, and no new axes, which Dask cannot fuse with what follows: the result has
    # as many axes as the operand with the most, and of each but the rows one block.
    pairs = [
        item
        for x, axis in zip(arrays, axes, strict=True)
        for item in (x, _block_indices(x.ndim, axis))
    ]
    where = _block_indices(rank, first) if is_one else tuple(range(rank))
    bundle = da.blockwise(
        _only_result if is_one else _results_of_block,
        where,
        *(whole, None, *pairs),
        align_arrays=False,
        meta=np.empty((0,) * rank, avals[0].dtype if is_one else object),
        token=f"letir-rows-{group.fn.binds[-1].op.name}",
    )
    rows = arrays[0].chunks[axes[0]]
    if is_one:
        return (_array_of_tasks(bundle.dask, bundle.name, first, rows, avals[0]),)
    root = (
        _reduction_tree(bundle, group) if any(type(r) is Partial for r in group.results) else None
    )
    return tuple(
        _row_result(bundle, i, result, rows, kind)
        if type(result) is int
        else _whole_result(root, i, kind)
        for i, (result, kind) in enumerate(zip(group.results, avals, strict=True))
    )


def _block_indices(ndim: int, rows: int) -> tuple[int, ...]:
    """The indices of an array for ``blockwise``: 0 for its rows, others for its other axes."""
    rest = iter(range(1, ndim))
    return tuple([0 if axis == rows else next(rest) for axis in range(ndim)])


def _array_of_tasks(graph: Any, name: str, axis: int, rows: tuple, aval: ArrayType) -> da.Array:
    """The array of these tasks."""
    chunks = tuple([rows if i == axis else (n,) for i, n in enumerate(aval.shape)])
    return da.Array(graph, name, chunks=chunks, meta=meta_of(aval))


def _pack_whole_operands(*values: Any) -> tuple:
    """A group with its whole operands, as one value that all tasks of the group share."""
    return values


def _in_graph(operand: Any) -> Any:
    """A whole operand for ``_pack_whole_operands``."""
    if isinstance(operand, da.Array):
        return operand.to_delayed(optimize_graph=False).item()
    return operand


def _split_alike(operands: list, axes: list[int]) -> list:
    """The operands, all of them split into the same blocks along their axes of rows."""
    pairs = list(zip(operands, axes, strict=True))
    rows = next(x.chunks[a] for x, a in pairs if isinstance(x, da.Array) and x.numblocks[a] > 1)
    result: list = []
    for x, a in pairs:
        chunks = tuple([rows if i == a else n for i, n in enumerate(np.shape(x))])
        array = x if isinstance(x, da.Array) else da.from_array(np.asarray(x), chunks=chunks)
        result += [array, tuple([0 if i == a else f"{len(result)}.{i}" for i in range(array.ndim)])]
    return da.core.unify_chunks(*result)[1]


def _results_of_block(whole: tuple, *blocks: Any) -> tuple:
    """The results of a group for a block of each split operand."""
    group, *values = whole
    arrays = list(blocks)
    count = arrays[0].shape[group.params[0]]
    arrays += values
    for param, axis in _row_number_params(group):
        shape = tuple([count if i == axis else 1 for i in range(param.type.ndim)])
        arrays.append(np.arange(count, dtype=param.type.dtype).reshape(shape))
    pairs = zip(group.fn.params, arrays, strict=True)
    arrays = [as_operand(param.type, array) for param, array in pairs]
    with one_thread():  # the scheduler computes as many blocks at once as there are cores
        results = _compiled_for(group, count).run_flat(arrays)
    return tuple([np.asarray(result)[()] for result in results])


def _only_result(whole: tuple, *blocks: Any) -> Any:
    """The result of a group that has one."""
    return _results_of_block(whole, *blocks)[0]


def _row_number_params(group: RowProgram) -> list[tuple]:
    """(parameter, axis) of the parameters that number the rows."""
    pairs = list(zip(group.fn.params, group.params, strict=True))
    return pairs[len(pairs) - group.numbers :]


def _compiled_for(group: RowProgram, count: int) -> Compiled:
    """The plan of ``group`` for ``count`` rows, from a cache."""
    key = group.token, count
    result = _compiled.get(key)
    if result is None:
        result = _compiled[key] = compile(group.for_rows(count))
    return result


def _reduction_tree(bundle: da.Array, group: RowProgram) -> da.Array:
    """The partial results of all blocks, joined by a tree of tasks, as one block."""
    joins = tuple([r if type(r) is Partial else None for r in group.results])
    every = dask.config.get("split_every", _SPLIT_EVERY)
    name = f"letir-rows-tree-{uuid.uuid4().hex}"
    keys: list = _block_keys(bundle)
    tasks: dict = {}
    depth = 0
    while len(keys) > every:
        parts = [keys[i : i + every] for i in range(0, len(keys), every)]
        keys = [(f"{name}-{depth}", i) for i in range(len(parts))]
        tasks.update(
            {
                key: (_join_partial_results, joins, part)
                for key, part in zip(keys, parts, strict=True)
            }
        )
        depth += 1
    tasks[name, 0] = (_finish_partial_results, joins, keys)
    graph = _graph_of_tasks(name, tasks, bundle)
    return da.Array(graph, name, chunks=((1,),), meta=np.empty(0, object))


def _join_partial_results(joins: tuple[Partial | None, ...], parts: list[tuple]) -> tuple:
    """The partial results of several blocks, in their order."""
    result: list = []
    for i, partial in enumerate(joins):
        join = None if partial is None else getattr(np, partial.ufunc)
        result.append(None if join is None else functools.reduce(join, [part[i] for part in parts]))
    return tuple(result)


def _finish_partial_results(joins: tuple[Partial | None, ...], parts: list[tuple]) -> tuple:
    """The results of all blocks."""
    joined = _join_partial_results(joins, parts)
    pairs = zip(joined, joins, strict=True)
    return tuple([x / part.divisor if part and part.divisor else x for x, part in pairs])


def _graph_of_tasks(name: str, tasks: dict, array: Any) -> HighLevelGraph:
    """The graph with these tasks on the blocks of an array."""
    return HighLevelGraph.from_collections(name, tasks, dependencies=[array])


def _block_keys(bundle: da.Array) -> list[tuple]:
    """The keys of the blocks, in the order of the rows."""
    return [(bundle.name, i, *[0] * (bundle.ndim - 1)) for i in range(bundle.numblocks[0])]


def _row_result(bundle: da.Array, i: int, axis: int, rows: tuple, aval: ArrayType) -> da.Array:
    """One of several results that have rows."""
    name = f"letir-rows-result-{uuid.uuid4().hex}"
    before, after = (0,) * axis, (0,) * (aval.ndim - axis - 1)
    tasks = {
        (name, *before, n, *after): (operator.itemgetter(i), key)
        for n, key in enumerate(_block_keys(bundle))
    }
    graph = _graph_of_tasks(name, tasks, bundle)
    return _array_of_tasks(graph, name, axis, rows, aval)


def _whole_result(root: da.Array, i: int, aval: ArrayType) -> da.Array:
    """A result that is joined from partial ones."""
    name = f"letir-rows-result-{uuid.uuid4().hex}"
    task = (_as_type, (root.name, 0), i, aval.dtype)
    tasks = {(name, *[0] * aval.ndim): task}
    graph = _graph_of_tasks(name, tasks, root)
    return da.Array(graph, name, chunks=tuple([(n,) for n in aval.shape]), meta=meta_of(aval))


def _as_type(values: tuple, i: int, dtype: np.dtype) -> Any:
    """One of the results in its dtype."""
    return np.asarray(values[i]).astype(dtype, copy=False)[()]
