"""``lt.scan``: a loop over the leading axis of arrays, for Python callers.

The step function is recorded once for any number of steps, and the loop is one bind.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree
from attrs import frozen

from letir.ast import LATE_BOUND, entry_point
from letir.ast.builder import LetBuilder, Value
from letir.ast.pytrees import NAMESPACE, Tree, flatten
from letir.ast.signatures import C
from letir.ast.terms import Lambda
from letir.ast.types import PYTHON_NUMBERS, ArrayType, ShapeDtype, Size
from letir.errors import DTypeError, ShapeError, TraceError
from letir.eval.arguments import leaf_names
from letir.eval.array_modules import is_array, type_of
from letir.tracing.control_flow.scan_segments import ScanLoop
from letir.tracing.control_flow.traced_bodies import record_abstractly, run_program
from letir.tracing.operands import positive_int
from letir.tracing.source_locations import at_user, user_place

_MAX_ROUNDS = 4  # rounds of promoting Python numbers in the carry


@entry_point
def scan(
    f: Callable[[C, Any], tuple[C, Any]],
    init: C,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    checkpoint_every: int | None = None,
) -> tuple[C, Any]:
    """(last carry, ys): ``carry, y = f(carry, x)`` for each ``x`` of the leading axis of ``xs``.

    ``init``, ``xs`` and each ``y`` are pytrees; the ys are stacked. ``f`` is recorded once, so the
    size of the program does not depend on the number of steps. If ``xs`` is None, ``length`` is the
    number of steps. ``reverse`` goes from the last ``x`` to the first; each y has the position of
    its x. The carry must keep its structure, shapes and dtypes; Python numbers in ``init`` become
    arrays of the dtype that ``f`` returns. ``unroll=k`` computes k steps in each trip of the loop,
    and the remaining ones after it; True unrolls the whole loop. The backward pass keeps the
    residuals of each step; with ``checkpoint_every=k`` it keeps every k-th carry and recomputes the
    steps between (Chen et al., Training deep nets with sublinear memory cost, 2016). Traced values
    that ``f`` closes over are differentiated too. Raises TraceError, ShapeError or DTypeError that
    names the leaf.

    >>> import numpy as np
    >>> total, sums = scan(lambda s, x: (s + x, s + x), 0.0, np.array([1.0, 2.0, 3.0]))
    >>> total, sums
    (np.float64(6.0), array([1., 3., 6.]))
    """
    source, _ = user_place(2)
    rows, spec = flatten(xs)
    n = step_count(rows, length, "scan")
    step = _Step.recorded(f, init, rows, spec, "scan")
    every = checkpoint_every
    if every is not None:
        every = positive_int(every, "scan: checkpoint_every")
    leaves = [*step.init, *[as_row(x) for x in rows], *step.lifted]
    size = _unrolled_steps(unroll, n)
    loop = ScanLoop(step.fn, len(step.init), len(step.lifted), bool(reverse), source, size)
    program = _loop_program(loop, leaves, n, every)
    outs = run_program(program, leaves)
    count = len(step.init)
    carry: Any = step.carry_spec.unflatten(outs[:count])
    return carry, step.y_spec.unflatten(outs[count:])


def as_row(x: Any) -> Any:
    """An array over which a loop runs."""
    return x if isinstance(x, Value) or is_array(x) else np.asarray(x)


def row_type(x: Any) -> ArrayType:
    """The type of an array over which a loop runs."""
    return x.type if isinstance(x, Value) else type_of(as_row(x))


def _whole_length(length: Any, caller: str) -> int:
    """The number of steps as an int. Raises DTypeError unless it is an integer."""
    try:
        result = operator.index(length)
    except TypeError:
        raise DTypeError(
            f"{caller}: length must be an integer, the number of steps, found "
            f"{length!r}{at_user()}\n"
            "  pass a whole number"
        ) from None
    if result >= 1 << 63:
        raise ShapeError(
            f"{caller}: length is {result}, which does not fit into 64 bits{at_user()}\n"
            "  pass a smaller number of steps"
        )
    return result


def array_words(name: str, i: int, count: int) -> str:
    """Array number ``i`` of the ``count`` arrays in the argument ``name``, in an error."""
    return name if count == 1 else f"array {i} in {name}"


def step_count(rows: Sequence, length: Any, caller: str, name: str = "xs") -> Size | int:
    """The number of steps: an int or a symbolic size. Raises ShapeError if lengths differ.

    ``name``: the arguments that hold ``rows``, in errors.
    """
    sizes = []
    for i, x in enumerate(rows):
        aval = row_type(x)
        if aval is None:
            raise TraceError(
                f"{caller}: the type of xs is not known{at_user()}\n  trace with concrete arrays"
            )
        if not aval.shape:
            raise ShapeError(
                f"{caller}: {array_words(name, i, len(rows))} is {aval}, which has no axis to loop "
                f"over{at_user()}\n"
                "  leave out what is the same in every step: the function can use it directly"
            )
        sizes.append(aval.shape[0])
    if length is not None:
        sizes.append(length if type(length) is Size else _whole_length(length, caller))
    if not sizes:
        raise ShapeError(
            f"{caller}: xs is empty, so length must be given{at_user()}\n  write length=n"
        )
    if any(n != sizes[0] for n in sizes):
        listed = ", ".join(map(str, sizes))
        axes = f"the leading axes of {name}" + (" and length" if length is not None else "")
        remedy = ", or leave length out" if length is not None else ""
        raise ShapeError(
            f"{caller}: {axes} differ: {listed}{at_user()}\n  make the arrays equally long{remedy}"
        )
    if type(sizes[0]) is int and sizes[0] < 0:
        raise ShapeError(
            f"{caller}: length must not be negative, found {sizes[0]}{at_user()}\n"
            "  pass the number of steps"
        )
    return sizes[0]


# ---- the step ----


@frozen(eq=False)
class _Step:
    """A recorded step: ``fn(*carry, *x, *lifted)`` gives the leaves of the carry and of y."""

    fn: Lambda
    init: list
    lifted: tuple
    carry_spec: optree.PyTreeSpec
    y_spec: optree.PyTreeSpec

    @classmethod
    def recorded(cls, f: Callable, init, rows: Sequence, spec, caller: str) -> "_Step":
        """``f`` recorded for this carry, again if Python numbers in the carry are promoted."""
        leaves, carry_spec = flatten(init)
        names = _leaf_paths(init)
        init = [_initial_leaf(leaf, name, caller) for leaf, name in zip(leaves, names, strict=True)]
        avals = [type_of(leaf) for leaf in init]
        slices = [ShapeDtype(row_type(x).shape[1:], row_type(x).dtype) for x in rows]
        for _ in range(_MAX_ROUNDS):
            checked = _Returned(f, carry_spec, spec, avals, caller)
            arguments = (*map(declare_argument, avals), *slices)
            recording = record_abstractly(f"{caller}: f", checked, arguments)
            results = [arg.type for arg in recording.fn.ret.args]
            new_types = [
                _promoted_carry_type(kind, out, leaf)
                for kind, out, leaf in zip(avals, results, init, strict=False)
            ]
            if new_types == avals:
                break
            avals = new_types
        _check_carry(avals, results, names, caller)
        labels = leaf_names(f, (carry_spec.unflatten(init), spec.unflatten(rows)), {})
        init = [_initial_as_array(leaf, kind) for leaf, kind in zip(init, avals, strict=True)]
        body = as_body(recording.fn, labels)
        return cls(body, init, recording.lifted, carry_spec, checked.y_spec)


def as_body(fn: Lambda, names: Sequence[str | None]) -> Lambda:
    """A recorded function as a body with flat arguments of these names."""
    for param, name in zip(fn.params, names, strict=False):
        param.name = name
    return Lambda(fn.params, fn.binds, fn.ret)


def _leaf_paths(tree) -> list[str]:
    """The path of each leaf of ``tree``, as text."""
    paths = optree.tree_paths(tree, namespace=NAMESPACE)
    return ["".join(f"[{part!r}]" for part in path) for path in paths]


def _initial_leaf(leaf, name: str, caller: str):
    """A leaf of the initial carry, with a Python bool as an array."""
    if type(leaf) is bool:
        return np.bool_(leaf)
    if isinstance(leaf, Value) or is_array(leaf) or type(leaf) in PYTHON_NUMBERS:
        return leaf
    raise DTypeError(
        f"{caller}: init{name} is {leaf!r} of type {type(leaf).__name__}, which no step can pass "
        f"on{at_user()}\n  carry arrays and numbers; close over other values"
    )


def declare_argument(aval: ArrayType) -> ShapeDtype:
    """An abstract argument of this type."""
    return ShapeDtype(aval.shape, aval.dtype, aval.weak)


def _promoted_carry_type(aval: ArrayType, out: ArrayType | None, leaf) -> ArrayType:
    """The type of a carried value; a Python number gets the strong type that a step returns."""
    if not type_of(leaf).weak or out is None:
        return aval
    if out.weak and out.dtype == aval.dtype:
        return ArrayType(aval.dtype, aval.shape)
    dtype = np.result_type(aval.dtype, out.dtype) if not aval.weak else out.dtype
    return ArrayType(dtype if _can_become(aval, out) else aval.dtype, aval.shape)


def _can_become(aval: ArrayType, out: ArrayType) -> bool:
    """Whether a number of this type can be converted to the type that a step returns."""
    order = "biufc"
    return order.index(out.dtype.kind) >= order.index(aval.dtype.kind)


def _initial_as_array(leaf, aval: ArrayType):
    """A leaf of the initial carry as an array of this type."""
    if type(leaf) in PYTHON_NUMBERS:
        return np.asarray(leaf, aval.dtype)[()]
    return leaf.astype(aval.dtype) if type_of(leaf).weak else leaf


def _check_carry(kinds: Sequence, results: Sequence, names: Sequence[str], caller: str) -> None:
    """Raise if a step returns a carry of another type than it got."""
    changed = [
        (name, aval, out)
        for name, aval, out in zip(names, kinds, results, strict=False)
        if out is not None and (out.dtype, out.shape) != (aval.dtype, aval.shape)
    ]
    if not changed:
        return
    listed = "".join(
        f"\n  carry{name}: {aval} comes in, {out} goes out" for name, aval, out in changed
    )
    error = DTypeError if any(k.dtype != o.dtype for _, k, o in changed) else ShapeError
    raise error(
        f"{caller}: the carry that f returns differs in type from the carry that it gets{listed}"
        f"{at_user()}\n  convert one of them, as with .astype: the types must "
        "be the same in every step"
    )


class _Returned:
    """``f`` on leaves: checks that it returns (carry, y), and stores their nesting."""

    def __init__(self, f: Callable, carry_spec, x_spec, avals: list[ArrayType], caller: str):
        self.f, self.carry_spec, self.x_spec = f, carry_spec, x_spec
        self.kinds, self.caller, self.y_spec = avals, caller, None

    def __call__(self, *leaves):
        count = len(self.kinds)
        carry = self.carry_spec.unflatten(leaves[:count])
        out = self.f(carry, self.x_spec.unflatten(leaves[count:]))
        if not isinstance(out, tuple | list) or len(out) != 2:
            raise TraceError(
                f"{self.caller}: f must return (carry, y), found "
                f"{LATE_BOUND['describe_value'](out)}{at_user()}\n"
                "  return (carry, None) where a step adds nothing to the stacked results"
            )
        handed_on, spec = flatten(out[0])
        if spec != self.carry_spec:
            raise TraceError(
                f"{self.caller}: the carry that f returns nests as {Tree(spec)}, "
                f"the carry that it gets as {Tree(self.carry_spec)}{at_user()}\n"
                "  return the carry nested as init"
            )
        ys, self.y_spec = flatten(out[1])
        carry = [
            carry_as_array(leaf, kind) for leaf, kind in zip(handed_on, self.kinds, strict=True)
        ]
        return (*carry, *[carry_as_array(leaf, None) for leaf in ys])


def carry_as_array(leaf: Any, aval: ArrayType | None) -> Any:
    """A result of a step as an array; numbers take the dtype of the carry if it fits."""
    if type(leaf) in PYTHON_NUMBERS:
        has_type = aval is not None and not aval.weak and _can_become(type_of(leaf), aval)
        return np.asarray(leaf, aval.dtype if has_type else None)[()]
    if isinstance(leaf, Value) and leaf.type is not None and leaf.type.weak and aval is None:
        return leaf.astype(leaf.dtype)
    if isinstance(leaf, str | bytes):
        raise DTypeError(
            f"a step of a loop must return arrays and numbers, found {leaf!r}{at_user()}\n"
            "  leave it out of the results"
        )
    return leaf


# ---- the program ----


def _unrolled_steps(unroll: int | bool, n: Size | int) -> int:
    """The number of steps in a trip of the loop."""
    if unroll is False:
        return 1
    size = positive_int(unroll, "scan: unroll")
    if size == 1 and unroll is not True:
        return 1
    count = _known_steps("unroll", n)
    return max(count, 1) if unroll is True else size


def _known_steps(option: str, n: Size | int) -> int:
    """The number of steps. Raises ShapeError if it is symbolic."""
    if type(n) is int:
        return n
    raise ShapeError(
        f"scan: {option} needs a known number of steps, found {n}{at_user()}\n"
        "  trace with concrete arrays"
    )


def _loop_program(loop: ScanLoop, leaves: Sequence, n: Size | int, every: int | None) -> Lambda:
    """The program of the loop: one bind, or a few around segments."""
    builder = LetBuilder()
    builder.source = loop.source
    pairs = zip(leaves, loop.body.params, strict=True)
    operands = [builder.param(type_of(leaf), param.name) for leaf, param in pairs]
    if every is None:
        return builder.build(loop.emit(builder, operands, n if type(n) is int else None))
    count = _known_steps("checkpoint_every", n)
    return builder.build(loop.emit_checkpointed(builder, operands, count, every))
