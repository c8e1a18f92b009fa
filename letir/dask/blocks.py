"""Programs computed on blocks: the tasks that Dask's workers run, and the arrays of their results.

A task holds a program, which is sent as data and never as the user's code. A worker compiles it
once for each type of its blocks.
"""

import operator
import uuid
from collections.abc import Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from attrs import field, frozen

from letir.ast.bounded_cache import BoundedCache
from letir.ast.checker import retype
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.eval.array_modules import type_of
from letir.executor.compiled import Compiled, compile

_compiled = BoundedCache(1 << 10)  # (token of a program, types of blocks) -> Compiled


@frozen(eq=False)
class BlockProgram:
    """A program as a function of blocks, with arrays as results; several results are a tuple.

    ``is_sized``: its sizes are symbolic, so that blocks of all sizes fit; another program gets the
    types of the blocks.
    """

    fn: Lambda
    is_sized: bool = False
    token: str = field(factory=lambda: uuid.uuid4().hex)

    def __call__(self, *blocks: Any) -> Any:
        pairs = zip(self.fn.params, blocks, strict=True)
        values = [as_operand(param.type, block) for param, block in pairs]
        results = self._compiled_for(tuple(map(type_of, values))).run_flat(values)
        arrays = [np.asarray(result)[()] for result in results]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    @property
    def label(self) -> str:
        """A name for tasks: the operation, or the first and the last one."""
        names = list(dict.fromkeys(bind.op.name for bind in self.fn.binds))
        return "letir-" + "-".join(names if len(names) < 3 else [names[0], "to", names[-1]])

    def __dask_tokenize__(self) -> str:
        return self.token

    def _compiled_for(self, types: tuple[ArrayType, ...]) -> Compiled:
        key = self.token, types
        result = _compiled.get(key)
        if result is None:
            fn = self.fn if self.is_sized else retype(self.fn, *types)
            result = _compiled[key] = compile(fn)
        return result


def as_operand(aval: ArrayType | None, block: Any) -> Any:
    """A block as an operand; a 0-d block as a Python number or a NumPy scalar, by its type."""
    if type(block) is not np.ndarray or block.ndim:
        return block.item() if aval is not None and aval.weak and hasattr(block, "item") else block
    return block.item() if aval is not None and aval.weak else block[()]


def elementwise_by_block(
    program: BlockProgram, operands: Sequence, avals: Sequence[ArrayType]
) -> tuple:
    """The results of an elementwise program, computed once for each block.

    ``avals``: the types of the results, which have one shape. Operands are broadcast, and chunks
    are aligned, as Dask's own operators do.
    """
    axes = tuple(range(avals[0].ndim))
    pairs: list = []
    for operand in map(as_dask, operands):
        has_blocks = isinstance(operand, da.Array)
        pairs += [operand, axes[len(axes) - operand.ndim :] if has_blocks else None]
    if len(avals) == 1:
        return (da.blockwise(program, axes, *pairs, meta=meta_of(avals[0]), token=program.label),)
    # each block is a tuple, with an element for each result
    meta = np.empty((0,) * len(axes), object)
    bundle = da.blockwise(program, axes, *pairs, meta=meta, token=program.label)
    return tuple(
        da.blockwise(operator.itemgetter(i), axes, bundle, axes, meta=meta_of(kind))
        for i, kind in enumerate(avals)
    )


def run_in_one_task(program: BlockProgram, operands: Sequence, avals: Sequence[ArrayType]) -> tuple:
    """The results of a program whose operands have one block each."""
    parts = [x.to_delayed().item() if isinstance(x, da.Array) else x for x in operands]
    name = f"{program.label}-{uuid.uuid4().hex}"
    task = dask.delayed(program)(*parts, dask_key_name=name)
    tasks = [task] if len(avals) == 1 else [task[i] for i in range(len(avals))]
    return tuple(
        da.from_delayed(task, aval.shape, meta=meta_of(aval))
        for task, aval in zip(tasks, avals, strict=True)
    )


def as_dask(operand: Any) -> Any:
    """An array with axes as a Dask array of one block; other values unchanged."""
    if isinstance(operand, np.ndarray) and operand.ndim:
        return da.from_array(operand, chunks=-1)
    return operand


def in_one_block(operand: Any) -> Any:
    """An operand that is not split."""
    return operand.rechunk(-1) if isinstance(operand, da.Array) else operand


def without_empty_blocks(operand: Any) -> Any:
    """An array without its empty blocks, unless all blocks are empty; other values unchanged.

    Dask's own functions fail for such blocks, and so do extrema.
    """
    if not isinstance(operand, da.Array) or not any(0 in sizes for sizes in operand.chunks):
        return operand
    chunks = tuple([tuple([n for n in sizes if n]) or (0,) for sizes in operand.chunks])
    return operand.rechunk(chunks)


def same_rows(arrays: Sequence) -> list:
    """The arrays with the same blocks along axis 0. Raises ValueError if another axis is split."""
    arrays = [as_dask(x) for x in arrays]
    if any(n > 1 for x in arrays for n in x.numblocks[1:]):
        raise ValueError("only axis 0 may be split")
    pairs = [item for x in arrays for item in (x, (0, *(f"{id(x)}.{n}" for n in range(1, x.ndim))))]
    return da.core.unify_chunks(*pairs)[1]


def has_one_block(operand: Any) -> bool:
    """Whether an operand is not split."""
    return not isinstance(operand, da.Array) or all(n == 1 for n in operand.numblocks)


def meta_of(aval: ArrayType) -> np.ndarray:
    """An empty array of a type, by which Dask knows dtype and number of axes."""
    return np.empty((0,) * aval.ndim, aval.dtype)
