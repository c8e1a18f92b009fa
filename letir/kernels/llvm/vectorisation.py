"""Which innermost loops are written as vector instructions, and what their steps have in common.

Such a loop reads and writes neighbouring elements in neighbouring steps, or the same element in all
steps. The scalars that it carries are reductions, whose elements may be combined in any order.
"""

from attrs import define, field, frozen

from letir.kernels.loop_language import (
    Array,
    Function,
    FunctionCall,
    Let,
    Load,
    Loop,
    Operand,
    Scalar,
    Statement,
    Store,
)

_SHORT = 24  # statements
_SEQUENTIAL = ("quotient", "fmod")  # instructions without vectors
VectorStatement = Let | Load | Store | FunctionCall
IDEMPOTENT = ("and", "or", "max", "min")  # reductions that may take an element twice


@frozen
class VectorPlan:
    """How to compute several steps of a loop together.

    ``invariant``: the statements with the same result in all steps. ``varying``: the others, whose
    results are vectors. An index that grows from step to step is invariant here: its value in the
    first step is meant. ``index``: that of the loop. ``reductions``: for each carried scalar the
    instruction that combines it with an element, and the scalar. ``itemsize``: of the largest
    scalars, in bytes; ``least``: of the smallest elements that are loaded or stored.
    ``accumulates``: whether an array is both read and written.
    """

    invariant: tuple[Statement, ...]
    varying: tuple[VectorStatement, ...]
    index: Scalar
    reductions: tuple[tuple[Let, Scalar], ...]
    itemsize: int
    least: int
    accumulates: bool

    def is_short(self) -> bool:
        """Whether further copies of the varying statements take little time to compile."""
        return len(self.varying) <= _SHORT


@frozen
class Steps:
    """The steps of a loop from ``start`` to ``stop``, each of ``count`` vectors.

    The limits are registers or numbers. ``is_masked``: whether lanes beyond ``stop`` are left out.
    """

    start: str
    stop: str
    count: int = 1
    is_masked: bool = False

    def length(self) -> int | None:
        """The number of elements, if it is known."""
        is_known = self.start.isdigit() and self.stop.isdigit()
        return int(self.stop) - int(self.start) if is_known else None


def vector_plan(loop: Loop, strides: dict[tuple[Array, int], str]) -> VectorPlan | None:
    """The plan of a loop over arrays with these strides in bytes, or None if there is none."""
    if not loop.is_parallel or loop.lanes:
        return None
    return _Planner(loop, strides).plan()


@define
class _Planner:
    """Sorts the statements of a loop.

    ``vectors``: the results that differ between steps. ``indices``: the scalars that grow by one
    from step to step. ``used``: the carried scalars and the results of their reductions.
    ``written``: the arrays of the stores so far.
    """

    loop: Loop
    strides: dict[tuple[Array, int], str]
    invariant: list[Statement] = field(factory=list)
    varying: list[VectorStatement] = field(factory=list)
    vectors: set[Operand] = field(factory=set)
    indices: set[Operand] = field(factory=set)
    reductions: dict[Operand, Let] = field(factory=dict)
    used: set[Operand] = field(factory=set)
    written: set[Array] = field(factory=set)

    def plan(self) -> VectorPlan | None:
        loop = self.loop
        self.indices.add(loop.index)
        self.used = {scalar for scalar, *_ in loop.carried}
        if not all(map(self.takes, loop.body)):
            return None
        if any(then not in self.reductions for _, _, then, _ in loop.carried):
            return None
        scalars = [x.value if isinstance(x, Store) else x.result for x in self.varying]
        accesses = [x.array.dtype.itemsize for x in self.varying if isinstance(x, Load | Store)]
        if not accesses:
            return None
        return VectorPlan(
            tuple(self.invariant),
            tuple(self.varying),
            loop.index,
            tuple([(self.reductions[then], scalar) for scalar, _, then, _ in loop.carried]),
            max([scalar.dtype.itemsize for scalar in scalars]),
            min(accesses),
            any(isinstance(x, Load) and x.array in self.written for x in self.varying),
        )

    def takes(self, statement: Statement) -> bool:
        """Sort a statement; returns whether vectors can compute it."""
        if isinstance(statement, Let):
            return self.takes_let(statement)
        if isinstance(statement, FunctionCall):
            can = _is_straight(statement.function) and self.are_values(statement.operands)
            self.sort(statement, statement.operands)
            return can
        if isinstance(statement, Load):
            return self.takes_load(statement)
        if isinstance(statement, Store):
            self.varying.append(statement)
            self.written.add(statement.array)
            return self.are_values((statement.value,)) and self.is_neighbour(statement)
        return False

    def takes_let(self, statement: Let) -> bool:
        operands = statement.operands
        if any(x in self.indices for x in operands):
            others = [x for x in operands if x not in self.indices]
            self.indices.add(statement.result)
            self.invariant.append(statement)
            return statement.name == "add" and len(others) == 1 and self.are_fixed(tuple(others))
        carried = [x for x in operands if x in self.used]
        if not carried:
            self.sort(statement, operands)
            return statement.name not in _SEQUENTIAL
        self.reductions[statement.result] = statement
        self.used.add(statement.result)
        self.varying.append(statement)
        own = [then for scalar, _, then, _ in self.loop.carried if scalar is carried[0]]
        return len(carried) == 1 and own == [statement.result] and _is_reduction(statement)

    def takes_load(self, statement: Load) -> bool:
        if self.is_neighbour(statement):
            self.varying.append(statement)
            self.vectors.add(statement.result)
            return True
        self.invariant.append(statement)
        fixed = statement.indices
        if fixed and fixed[-1] in self.indices:
            fixed = fixed[:-1] if self.strides[statement.array, len(fixed) - 1] == "0" else fixed
        return self.are_fixed(fixed) and statement.array not in self.written

    def sort(self, statement: Let | FunctionCall, operands: tuple[Operand, ...]) -> None:
        if self.vectors.isdisjoint(operands):
            self.invariant.append(statement)
        else:
            self.varying.append(statement)
            self.vectors.add(statement.result)

    def are_values(self, operands: tuple[Operand, ...]) -> bool:
        """Whether these are neither indices nor carried scalars."""
        return not any(x in self.indices or x in self.used for x in operands)

    def are_fixed(self, operands: tuple[Operand, ...]) -> bool:
        """Whether these are the same in all steps."""
        return self.are_values(operands) and self.vectors.isdisjoint(operands)

    def is_neighbour(self, access: Load | Store) -> bool:
        """Whether neighbouring steps access neighbouring elements."""
        if access.part or not access.indices:
            return False
        *outer, last = access.indices
        side_by_side = self.strides[access.array, len(outer)] == str(access.array.dtype.itemsize)
        return last in self.indices and side_by_side and self.are_fixed(tuple(outer))


def _is_reduction(statement: Let) -> bool:
    """Whether the operands of a chain of this instruction may be combined in any order."""
    if statement.result.dtype.kind == "f":
        return statement.reassociates or statement.name in ("max", "min")
    return statement.name in (*IDEMPOTENT, "add", "mul", "xor")


def _is_straight(function: Function) -> bool:
    """Whether a function is a list of instructions with vectors, and of calls of such functions."""
    return all(
        x.name not in _SEQUENTIAL
        if isinstance(x, Let)
        else isinstance(x, FunctionCall) and _is_straight(x.function)
        for x in (*function.test, *function.body)
    )
