"""``DaskEvaluator``: runs programs on Dask arrays; results are Dask arrays, computed on demand.

If arrays are split along one axis, the operations that act on their rows become one task for each
block (``row_partition``). Of the other operations, groups of elementwise operations become one task
for each block, and an operation whose operands have one block each becomes one task. Dask's own
functions, such as its trees of sums, compute the rest; an operation that Dask lacks is refused.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np

from letir import passes
from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.bounded_cache import BoundedCache
from letir.ast.checker import retype
from letir.ast.primitive import results_tuple
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Arg, Bind, Lambda, Let, Local, Ret
from letir.ast.types import ArrayType, Undef
from letir.dask.array_functions import DASK_FUNCTIONS, DASK_MAKERS
from letir.dask.blocks import (
    BlockProgram,
    as_dask,
    elementwise_by_block,
    has_one_block,
    in_one_block,
    run_in_one_task,
    same_rows,
    without_empty_blocks,
)
from letir.dask.picked_rows import counts_rows, for_rows
from letir.dask.row_partition import MIXED, group_row_binds
from letir.dask.row_tasks import rows_by_task
from letir.errors import DTypeError, LetirError
from letir.eval.array_modules import type_of
from letir.eval.evaluator import Environment, Evaluator, compute
from letir.ops.effects.writes_to_arguments import changed_params
from letir.passes.fusion.regrouping import without_groups
from letir.visitors.visitor import TailCall


class DaskEvaluator(Evaluator):
    """Evaluates programs on Dask arrays; NumPy computes operations without such an operand."""

    def __init__(self, xp: Any = DASK_FUNCTIONS, observe: Callable | None = None):
        super().__init__(DASK_FUNCTIONS, observe)

    def call(self, fn: Lambda, args: Sequence) -> tuple:
        types = [
            param.type if arg is Undef else type_of(arg)
            for param, arg in zip(fn.params, args, strict=True)
        ]
        args = list(map(without_empty_blocks, args))
        axes = tuple(map(_axis_of_rows, args))
        result = fn.memo(_grouped_programs).get((*types, *axes))
        if result is None:
            result = fn.memo(_grouped_programs)[*types, *axes] = _grouped_program(fn, types, axes)
        return super().call(result, args)

    def visit_let(self, let: Let, env: Environment) -> TailCall:
        env.at = bind = let.bind
        results = self.results_of(bind, env.operands(bind.args))
        if self.observe is not None:
            self.observe(bind, results)
        env.bind(bind.binders, results)
        return TailCall(let.body, env)

    def results_of(self, bind: Bind, operands: list) -> tuple:
        """The results of a bind."""
        op = bind.op
        if op.effect:  # guards and printing need the values now
            operands = list(dask.compute(*operands))
        if not any(isinstance(x, da.Array) for x in operands):
            return results_tuple(op, compute(op, operands, bind.attrs))
        if op.role == "rows":
            avals = [binder.type for binder in bind.binders]
            return rows_by_task(bind.attrs["group"], operands, avals)
        if op.undefinable:  # it tests which of its operands are ``Undef``
            call = {"call": self.call} if op.holds_lambdas else {}
            return results_tuple(op, op.impl(DASK_MAKERS, *operands, **call, **bind.attrs))
        if any(0 in x.shape for x in operands if isinstance(x, da.Array)):
            # Dask's own functions fail for empty blocks
            operands = list(map(in_one_block, operands))
        avals = [binder.type for binder in bind.binders]
        if not all(map(has_static_shape, avals)):
            raise self._refusal(bind, operands, "the sizes of its result depend on values")
        if op.role == "fused":
            return self._group_results(bind, operands, avals)
        if op.elementwise:
            return elementwise_by_block(
                BlockProgram(_program_of_bind(bind)), _array_operands(bind, operands), avals
            )
        if all(map(has_one_block, operands)):
            return run_in_one_task(
                BlockProgram(_program_of_bind(bind)), _array_operands(bind, operands), avals
            )
        if counts_rows(bind, operands):
            return self._picked_rows(bind, operands)
        return self._compute_by_dask(bind, operands, avals)

    def _group_results(self, bind: Bind, operands: list, avals: list[ArrayType]) -> tuple:
        """The results of a group of elementwise binds."""
        fn = bind.attrs["body"]
        if all(inner.op.elementwise for inner in fn.binds) and len({k.shape for k in avals}) == 1:
            return elementwise_by_block(BlockProgram(fn), operands, avals)
        return Evaluator.call(self, fn, operands)  # a group that ends by joining its results

    def _compute_by_dask(self, bind: Bind, operands: list, avals: list[ArrayType]) -> tuple:
        """The results, computed by Dask's own functions. Raises LetirError if Dask has none."""
        op = bind.op
        if op.role == "index":  # the number of places is known of masks that are NumPy arrays only
            operands = [as_dask(operands[0]), *operands[1:]]
        else:
            operands = [as_dask(x) for x in operands]
        if _is_scan(bind):
            return self._scan(bind, operands)
        if op.holds_lambdas or op.random:
            raise self._refusal(bind, operands, "it runs on whole arrays only")
        try:
            xp = DASK_MAKERS if op.reads_sizes_only else self.xp
            results = results_tuple(op, op.impl(xp, *operands, **bind.attrs))
        except Exception as error:
            raise self._refusal(bind, operands, _first_sentence(error)) from None
        if len(results) != len(avals):
            raise self._refusal(bind, operands, "its number of results depends on values")
        return tuple(map(functools.partial(self._as_typed, bind, operands), results, avals))

    def _scan(self, bind: Bind, operands: list) -> tuple:
        """The results of a loop over the first axis of some operands, block after block."""
        layout, attrs = bind.op.bodies, bind.attrs
        n_carry, end = layout.n_carry(bind), layout.n_carry(bind) + layout.n_elements(bind)
        carry, rows, captured = operands[:n_carry], operands[n_carry:end], operands[end:]
        if not all(map(has_one_block, [*carry, *captured])) or not rows:
            raise self._refusal(bind, operands, "only the axis of its steps may be split")
        try:
            rows = same_rows(rows)
        except ValueError as error:
            raise self._refusal(bind, operands, str(error)) from None
        stacks: list[list] = []
        places = range(rows[0].numblocks[0])
        for k in reversed(places) if attrs["reverse"] else places:
            block = [*carry, *[row.blocks[k] for row in rows], *captured]
            step = _with_operands(bind, tuple(map(type_of, block)))
            results = run_in_one_task(
                BlockProgram(step), block, [arg.type for arg in step.ret.args]
            )
            carry = list(results[:n_carry])
            stacks.append(list(results[n_carry:]))
        ordered = stacks[::-1] if attrs["reverse"] else stacks
        return (*carry, *[da.concatenate(parts) for parts in zip(*ordered, strict=True)])

    def _picked_rows(self, bind: Bind, operands: list) -> tuple:
        """The results of a bind that reads or writes one element of each row."""
        try:
            rows = same_rows([operands[0], *operands[2:]])
        except ValueError as error:
            raise self._refusal(bind, operands, str(error)) from None
        parts: list = []
        for k, count in enumerate(rows[0].chunks[0]):
            first, *others = [row.blocks[k] for row in rows]
            block = [first, np.arange(count), *others]
            fn = retype(_program_of_bind(for_rows(bind, count)), *map(type_of, block))
            parts += run_in_one_task(BlockProgram(fn), block, [arg.type for arg in fn.ret.args])
        return (da.concatenate(parts),)

    def _as_typed(self, bind: Bind, operands: list, result: Any, aval: ArrayType) -> Any:
        """A result of Dask's with the dtype that NumPy's result has."""
        result = da.asarray(result)
        if has_static_shape(aval) and result.shape != aval.shape:
            raise self._refusal(bind, operands, f"Dask gives a shape of {result.shape}")
        return result if result.dtype == aval.dtype else result.astype(aval.dtype)

    def _refusal(self, bind: Bind, operands: list, why: str) -> LetirError:
        """The error for a bind that cannot be computed on the blocks of its operands."""
        split = [
            f"operand {n} has {x.numblocks} blocks along its axes"
            for n, x in enumerate(operands)
            if not has_one_block(x)
        ]
        reason = "; ".join(split) or "its operands have one block each"
        return LetirError(
            f"{bind.op.name} cannot be computed on these blocks: {why}\n"
            f"  {reason}: give each one block before, by x.rechunk(-1), or split another axis"
        )


def _first_sentence(error: Exception) -> str:
    """The first sentence of an error's message, on one line."""
    return " ".join(str(error).strip().partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def _grouped_programs(_fn: Lambda) -> BoundedCache:
    """The programs made of one: types and axes of rows of the arguments -> the program."""
    return BoundedCache(16)


def _grouped_program(fn: Lambda, types: Sequence, axes: tuple[int | None, ...]) -> Lambda:
    """``fn`` for arguments of these types, in groups of binds that one task computes."""
    if any(param.type is not kind for param, kind in zip(fn.params, types, strict=True)):
        fn = retype(fn, *types)
    fn = fn.memo(_without_composites)
    if any(axis is not None and axis != MIXED for axis in axes):
        fn = group_row_binds(without_groups(fn), axes)
    return passes.fuse(fn)


def _axis_of_rows(arg: Any) -> int | None:
    """The axis along which an argument is split; ``MIXED`` for several; None if it is not."""
    if not isinstance(arg, da.Array):
        return None
    split = [axis for axis, blocks in enumerate(arg.numblocks) if blocks > 1]
    if len(split) == 1 and arg.size and arg.shape[split[0]] > 1:
        return split[0]
    return MIXED if split else None


def _without_composites(fn: Lambda) -> Lambda:
    """``fn`` without composites and bodies that run once."""
    if changed_params(fn):
        raise DTypeError(
            "the program writes into its arguments, and Dask arrays cannot be written into\n"
            "  return the new values, or trace a function that copies its argument first"
        )
    fn = passes.without_combinators(passes.without_barriers(fn))
    fn = passes.inline_bodies(fn, keep_rules=False)
    return passes.decompose(fn, keep_rules=False, exact=False)


def _program_of_bind(bind: Bind) -> Lambda:
    """A program of this bind alone, with its operands, except None and Undef, as parameters."""
    args = tuple([Local(arg.type) if _is_value(arg) else arg for arg in bind.args])
    binders = tuple([Local(binder.type) for binder in bind.binders])
    params = tuple([arg for arg in args if type(arg) is Local])
    return Lambda(params, (Bind(binders, bind.op, args, bind.attrs),), Ret(binders))


def _is_scan(bind: Bind) -> bool:
    """Whether a bind loops over the first axis of operands, step after step."""
    layout = bind.op.bodies
    return layout is not None and layout.loop == "elements" and "reverse" in bind.attrs


def _with_operands(bind: Bind, types: tuple[ArrayType, ...]) -> Lambda:
    """The program of the loop ``bind`` alone, for operands of other lengths."""
    attrs = Attrs({**bind.attrs, "length": None}) if "length" in bind.attrs else bind.attrs
    return retype(
        _program_of_bind(Bind(bind.binders, bind.op, bind.args, attrs, bind.source)), *types
    )


def _array_operands(bind: Bind, operands: list) -> list:
    """The operands that are parameters of ``_program_of_bind``."""
    return [x for x, arg in zip(operands, bind.args, strict=True) if _is_value(arg)]


def _is_value(arg: Arg) -> bool:
    """Whether an operand is an array or a number, not None or ``Undef``."""
    return type(arg) is Local or type(arg.type) is ArrayType


LATE_BOUND["dask_evaluator"] = DaskEvaluator
