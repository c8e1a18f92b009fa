"""``nditer``, ``broadcast`` and ``fromiter`` of traced arrays, element by element in C order."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.errors import TraceError, mark_unrecorded_code
from letir.numpy.array_creation import array, as_traced_constant
from letir.tracing.operands import first_traced, traced_or_array
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import at_user
from letir.tracing.trace_state import ACTIVE, Trace

_FLAGS = frozenset(
    ["multi_index", "c_index", "f_index", "refs_ok", "zerosize_ok", "copy_if_overlap"]
)


def _not_recorded(message: str) -> TraceError:
    """The error for an iterator that is not recorded; ``jit`` calls the function as Python."""
    return note_refusal(mark_unrecorded_code(TraceError(message)))


class NdIter:
    """``numpy.nditer`` of traced arrays: it yields 0-d arrays, into which a loop may write.

    An operand None is a new array. Buffering, external loops and casts are refused.
    """

    def __init__(
        self,
        op: Any,
        flags: Sequence[str] = (),
        op_flags: Sequence = (),
        op_dtypes: Any = None,
        order: str = "K",
        **options: Any,
    ):
        several = isinstance(op, tuple | list)
        operands = [x if x is None else traced_or_array(x) for x in (op if several else (op,))]
        arrays = [x for x in operands if x is not None]
        unknown = {*flags} - _FLAGS | options.keys()
        if unknown or op_dtypes is not None or order == "F":
            raise _not_recorded(
                f"nditer of traced arrays with {', '.join(sorted(unknown)) or 'these options'} is "
                f"not recorded{at_user()}\n  loop over numpy.ndindex(x.shape), or compute with x"
            )
        if order in ("K", "A") and not all(x.ndim < 2 or x.flags.c_contiguous for x in arrays):
            raise _not_recorded(
                f"nditer of a traced array that is not in C order is not recorded{at_user()}\n"
                "  pass order='C', or loop over numpy.ndindex(x.shape)"
            )
        self.shape = shape = np.broadcast_shapes(*[x.shape for x in arrays])
        dtype = np.result_type(*[x.dtype for x in arrays])
        # an array that has the broadcast shape is used itself: a loop may write into it
        self.operands = tuple(
            as_traced_constant(np.zeros(shape, dtype))
            if x is None
            else (x if x.shape == shape else np.broadcast_to(x, shape))
            for x in operands
        )
        self._order: Any = "C" if "c_index" in flags else "F" if "f_index" in flags else None
        self.ndim, self.nop = len(self.shape), len(operands)
        self.itersize = int(np.prod(self.shape))
        self.iterindex = 0

    @property
    def finished(self) -> bool:
        """Whether the iteration is past the last element."""
        return self.iterindex >= self.itersize

    @property
    def multi_index(self) -> tuple[int, ...]:
        """The index of the current element."""
        if self.finished:
            raise ValueError("Iterator is past the end")  # NumPy's words
        return tuple([int(i) for i in np.unravel_index(self.iterindex, self.shape)])

    @property
    def index(self) -> int:
        """The flat index of the current element, in the order that the flags say."""
        if not self._order:
            raise ValueError("Iterator does not have an index")  # NumPy's words
        return int(np.ravel_multi_index(self.multi_index, self.shape, order=self._order))

    @property
    def value(self) -> Any:
        """The current element: of each operand, or of the only one."""
        item: Any = (*self.multi_index, ...)
        result = tuple([x[item] for x in self.operands])
        return result if self.nop > 1 else result[0]

    def __getitem__(self, place: int) -> Any:
        return self.value[place] if self.nop > 1 else (self.value,)[place]

    def __setitem__(self, place: int, new: Any) -> None:
        self.operands[place][self.multi_index] = new

    def iternext(self) -> bool:
        """Go to the next element, and return whether there is one."""
        self.iterindex += 1
        return not self.finished

    def reset(self) -> None:
        """Go back to the first element."""
        self.iterindex = 0

    def __iter__(self) -> Iterator:
        while not self.finished:
            yield self.value
            self.iterindex += 1

    def __len__(self) -> int:
        return self.itersize

    def __enter__(self) -> "NdIter":
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Does nothing: writes are recorded immediately."""


class Broadcast:
    """``numpy.broadcast`` of traced arrays: their common shape, and tuples of elements."""

    def __init__(self, *arrays: Any):
        self._operands = np.broadcast_arrays(*[traced_or_array(x) for x in arrays])
        self.shape = self._operands[0].shape
        self.ndim = self.nd = len(self.shape)
        self.size, self.numiter = int(np.prod(self.shape)), len(arrays)

    def __iter__(self) -> Iterator[tuple]:
        for place in np.ndindex(*self.shape):
            yield tuple([x[place] for x in self._operands])


def _is_any_traced(operands: Any) -> bool:
    """Whether one of the operands, or of the operands in a list, is traced."""
    row = operands if isinstance(operands, tuple | list) else (operands,)
    return any(isinstance(x, Value) for x in row)


def nditer(op: Any, *args: Any, **options: Any) -> Any:
    """numpy.nditer, of traced arrays too."""
    return (NdIter if _is_any_traced(op) else np.nditer)(op, *args, **options)


def broadcast(*arrays: Any) -> Any:
    """numpy.broadcast, of traced arrays too."""
    return (Broadcast if _is_any_traced(arrays) else np.broadcast)(*arrays)


def fromiter(iter: Iterable, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    """numpy.fromiter, also of traced values."""
    if first_traced(items := list(iter)) is None and not isinstance(ACTIVE.get(), Trace):
        return np.fromiter(items, dtype, count)
    if count > len(items):
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(items)}")
    return array(items if count < 0 else items[:count], dtype)
