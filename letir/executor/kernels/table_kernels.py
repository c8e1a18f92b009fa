"""Long chains of different operations on small arrays as tables of instructions."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from letir.ast import LATE_BOUND
from letir.ast.terms import Bind, Lambda, Local
from letir.ast.types import ArrayType
from letir.eval.float_warnings import KernelError
from letir.executor.kernels.call_costs import cost_of_call
from letir.executor.kernels.kernel_binds import kernel_bind
from letir.kernels.llvm.machine_code import ufunc_of
from letir.kernels.machine_costs import machine_costs
from letir.kernels.tables.table_binds import fits_table
from letir.kernels.tables.table_kernel import SIGNATURE, table_kernel
from letir.kernels.tables.table_lowering import MAX_ROWS, NotInTable, Table, lower_to_table
from letir.passes.fusion.fusing import fused_level
from letir.passes.fusion.regrouping import without_groups
from letir.passes.fusion.unrolled_clusters import UnrolledCluster
from letir.visitors.usedef import use_counts

__warningregistry__ = "see kernel_binds"  # not a dict: warnings.warn fails
_MIN_BINDS = 150  # the fewest binds of a chain
# a program of equal steps has at least so many binds of each kind, and at most so many kinds
_EQUAL, _MAX_KINDS = 10, 200
# the most operands and results of a table, and the most elements of all results
_MAX_ARRAYS, _MAX_STORED = 100, 1 << 16
_MAX_FAILURES = 16  # attempts to find a chain, each without the bind that made the last one fail
_GAIN = 0.85  # a table may take at most this fraction of NumPy's estimated time
_DTYPES = tuple(map(np.dtype, "fd"))
_MIN_COST = 60  # binds that take less time are not lowered to a table


def with_first_tables(fn: Lambda, is_exact: bool = False) -> Lambda:
    """``with_tables``; ``fn`` itself if it consists of equal steps, which can share a kernel."""
    return fn if _is_repetitive(without_groups(fn)) else with_tables(fn, is_exact)


def with_tables(fn: Lambda, is_exact: bool = False) -> Lambda:
    """``fn`` with long chains of operations on small arrays replaced by tables.

    ``is_exact``: only tables whose bits are NumPy's.
    """
    flat = without_groups(fn)
    dtype = _usual_dtype(flat)
    if dtype is None or len(flat.binds) < _MIN_BINDS:
        return fn
    return _with_units(fn, flat, [*_Chains(flat, dtype, is_exact).units()])


def with_faster_tables(fn: Lambda, most: float, is_exact: bool = False) -> Lambda:
    """``with_tables`` if the calls then take less than ``most`` nanoseconds, else ``fn`` itself."""
    flat = without_groups(fn)
    dtype = _usual_dtype(flat)
    if dtype is None or most < _MIN_COST * len(flat.binds):
        return fn
    units = [*_Chains(flat, dtype, is_exact).units()]
    costs = [
        cost_of_call(x) if isinstance(x, Bind) else _cost_of_table(x.table, x.body) for x in units
    ]
    return fn if sum(costs) > most else _with_units(fn, flat, units)


def _with_units(fn: Lambda, flat: Lambda, units: Sequence["Bind | _Chain"]) -> Lambda:
    """The program of these binds and chains of ``flat``; ``fn`` if there are no chains."""
    if not any(type(unit) is _Chain for unit in units):
        return fn
    binds: list[Bind] = []
    for unit in units:
        binds += unit.binds_with_kernel() if isinstance(unit, _Chain) else [unit]
    return fused_level(flat.with_binds(binds))


def _usual_dtype(fn: Lambda) -> np.dtype | None:
    """The dtype of most results, if tables support it."""
    avals = [bind.binders[0].type for bind in fn.binds if len(bind.binders) == 1]
    counts = Counter([aval.dtype for aval in avals if type(aval) is ArrayType])
    result = max(counts, key=counts.__getitem__, default=None)
    return result if result in _DTYPES else None


def _is_repetitive(fn: Lambda) -> bool:
    """Whether the program consists of few different operations, as the steps of a loop are.

    Steps may read different elements, but not write to different ones.
    """
    avals = {
        (
            *(bind.op, None if bind.op.role == "index" else bind.attrs.token),
            *[x.type for x in (*bind.args, *bind.binders)],
        )
        for bind in fn.binds
    }
    return len(avals) <= _MAX_KINDS and _EQUAL * len(avals) < len(fn.binds)


@define(eq=False)
class _Chain:
    """A cluster of binds and its table."""

    cluster: UnrolledCluster
    body: Lambda
    table: Table

    def binds_with_kernel(self) -> list[Bind]:
        """The bind that calls the kernel, and the binds on its results."""
        cluster, table = self.cluster, self.table
        ufunc = ufunc_of(table_kernel(table.names, table.dtype), SIGNATURE)
        call = TableCall(ufunc, table, tuple([x.type.shape for x in self.body.params]))
        bind = kernel_bind(
            *(tuple(cluster.outputs), tuple(cluster.operands), self.body, call),
            cluster.binds[-1].source,
            keeps_order=table.needs_c_order,
        )
        return [bind, *cluster.after]


@define(eq=False)
class _Chains:
    """The search for chains in one program."""

    fn: Lambda
    dtype: np.dtype
    is_exact: bool
    uses: dict[Local, int] = field(init=False)
    failures: int = 0  # chains with a bind that no table computes

    def units(self) -> Iterator[Bind | _Chain]:
        """The binds, and chains in place of some, in an order of execution."""
        self.uses = use_counts(self.fn)
        chain: list[Bind] = []
        bound: set[Local] = set()
        for bind in self.fn.binds:
            if fits_table(bind, self.dtype, self.is_exact):
                chain.append(bind)
                bound.update(bind.binders)
                continue
            is_effect = bind.op.effect and bind.op.role != "guard"
            is_last = is_effect or bind.op.holds_lambdas or not bound.isdisjoint(bind.locals())
            if is_last:
                yield from self.finish_chain(chain)
                chain, bound = [], set()
            yield bind
        yield from self.finish_chain(chain)

    def finish_chain(self, binds: list[Bind]) -> Iterator[Bind | _Chain]:
        """A chain as a table; where it has none, smaller chains or its binds."""
        is_short_or_long = not _MIN_BINDS <= len(binds) <= MAX_ROWS
        if is_short_or_long or self.failures == _MAX_FAILURES:
            yield from binds
            return
        cluster = UnrolledCluster(max_arrays=_MAX_ARRAYS, max_stored=_MAX_STORED)
        for bind in binds:
            cluster.add(bind, 0)
        if not cluster.finish(self.uses):
            yield from binds
            return
        body = cluster.body()
        try:
            table = lower_to_table(body, self.dtype, self.is_exact)
        except NotInTable as error:
            self.failures += 1
            yield from self.finish_chain(binds[: error.position])
            yield binds[error.position]
            yield from self.finish_chain(binds[error.position + 1 :])
            return
        if _cost_of_table(table, body) > _GAIN * sum(map(cost_of_call, binds)):
            yield from binds
        else:
            yield _Chain(cluster, body, table)


def _cost_of_table(table: Table, body: Lambda) -> float:
    """The approximate nanoseconds of a call of a table."""
    costs, arrays = machine_costs(), len(table.operands) + len(table.results)
    copied = sum([arg.type.size for arg in (*body.params, *body.ret.args)])
    copied += len(table.constants[1])
    own = costs.table_call + costs.table_array * arrays + costs.table_element * copied
    return table.cost + own


@frozen(eq=False)
class TableCall:
    """The call of a table's kernel with operands of these shapes."""

    ufunc: Any
    table: Table
    shapes: tuple[tuple[int, ...], ...]

    @property
    def columns(self) -> int:
        """The elements of the memory of a call, not counting its results."""
        return self.table.size + _total_size(self.table.results)

    @property
    def scratch(self) -> tuple[np.dtype, ...]:
        """The dtype of this memory."""
        return (self.table.dtype,)

    def __call__(self, *operands: Any) -> Any:
        table = self.table
        memory = np.empty(table.size, table.dtype)
        for x, start, shape in zip(operands, table.operands, self.shapes, strict=True):
            self.put(memory, x, start, shape)
        start, values = table.constants
        memory[start : start + len(values)] = values
        output = np.empty(_total_size(table.results), table.dtype)
        self.ufunc(table.rows, memory, out=(output,))
        result = []
        for (first, shape), order in zip(table.results, table.orders, strict=True):
            like = operands[order] if type(order) is int else None
            result.append(_result_from_memory(output, first, shape, like))
        return tuple(result) if len(result) > 1 else result[0]

    def put(self, memory: np.ndarray, x: Any, start: int, shape: tuple[int, ...]) -> None:
        """Copy an operand to its place. Raises KernelError for operands of other sizes."""
        if getattr(x, "shape", ()) != shape:
            raise KernelError("operands of other sizes")
        try:
            if not shape:
                memory[start] = x
            else:
                memory[start : start + x.size].reshape(shape)[...] = x
        except OverflowError as error:
            raise KernelError("a large Python integer") from error


def _result_from_memory(output: np.ndarray, start: int, shape: tuple[int, ...], like: Any) -> Any:
    """A result: a number, or an array that owns its memory, in the order of ``like``."""
    if not shape:
        return output[start]
    part = output[start : start + math.prod(shape)].reshape(shape)
    if like is None or like.flags.c_contiguous:
        return part.copy()
    result = np.empty_like(like)
    result[...] = part
    return result


def _total_size(results: Sequence[tuple[int, tuple[int, ...]]]) -> int:
    """The number of elements of all results."""
    start, shape = results[-1]
    return start + math.prod(shape)


LATE_BOUND.update(
    with_first_tables=with_first_tables,
    with_tables=with_tables,
    with_faster_tables=with_faster_tables,
)
