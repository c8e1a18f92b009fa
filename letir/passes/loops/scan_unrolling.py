"""Unrolling of ``scan``, for ``letir.passes.loops.unrolling``."""

from collections.abc import Sequence

from attrs import frozen

from letir.ast.attrs import Attrs
from letir.ast.builder import LetBuilder
from letir.ast.derivative_types import strong_type
from letir.ast.primitive import Primitive
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Arg, Bind, Lambda, Local
from letir.ast.types import ArrayType
from letir.ops.control_flow.scans import scan
from letir.ops.elementwise.casting import cast
from letir.ops.indexing.basic import index
from letir.ops.shape.concatenate_stack_split import concatenate, stack
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import zeros


@frozen(eq=False)
class _ScanSteps:
    """A ``scan`` with a known number of steps.

    ``given`` and ``returned`` are the types of the body's arguments and results in a step.
    """

    body: Lambda
    carry: tuple[Arg, ...]
    xs: tuple[Arg, ...]
    captured: tuple[Arg, ...]
    length: int
    is_reverse: bool
    given: list[ArrayType | None]
    returned: list[ArrayType]

    def unroll_results(self, builder: LetBuilder, size: int | None) -> list[Arg]:
        """The results of all steps unrolled, or of blocks of ``size`` steps and the rest."""
        carry = [
            _initial_carry(builder, *pair) for pair in zip(self.carry, self.returned, strict=False)
        ]
        covered = self.length // size * size if size else 0
        rest, blocks = range(covered, self.length), range(covered)
        if self.is_reverse:  # the blocks, which are the last elements, come first
            rest, blocks = range(self.length - covered), range(self.length - covered, self.length)
        parts = []
        if blocks:
            carry, rows = self.loop_over_blocks(builder, carry, blocks, size)
            parts.append(rows)
        if rest or not blocks:
            carry, rows = self.unroll_steps(builder, carry, rest)
            parts.append(rows)
        if self.is_reverse:
            parts.reverse()
        return [*carry, *(_concatenate_stacked(builder, ys) for ys in zip(*parts, strict=True))]

    def unroll_steps(self, builder: LetBuilder, carry: Sequence, places: range) -> tuple:
        """(carry, stacked results) of unrolled steps for the elements at ``places``."""
        slices = [
            [_emit_one(builder, index, (x,), item=i) for x in self.xs]
            for i in self.sort_in_loop_order(places)
        ]
        return self.run_steps(builder, carry, slices, self.captured)

    def loop_over_blocks(
        self, builder: LetBuilder, carry: Sequence, places: range, size: int
    ) -> tuple:
        """(carry, stacked results) of a loop over blocks of steps."""
        inner = LetBuilder()
        names, count = self.body.params, len(self.carry)
        start = [inner.param(p.type, p.name).arg for p in names[:count]]
        kinds = names[count : count + len(self.xs)]
        slices = [[inner.param(p.type, p.name).arg for p in kinds] for _ in range(size)]
        captured = [inner.param(p.type, p.name).arg for p in names[count + len(self.xs) :]]
        last, ys = self.run_steps(inner, start, self.sort_in_loop_order(slices), captured)
        body = inner.build([*last, *ys])
        # strided views of the elements, one for each step of a block
        xs = [
            _emit_one(builder, index, (x,), item=slice(places.start + i, places.stop, size))
            for i in range(size)
            for x in self.xs
        ]
        attrs = Attrs(
            body=body,
            n_carry=count,
            n_xs=len(xs),
            length=len(places) // size,
            reverse=self.is_reverse,
        )
        results = builder.emit(scan, (*carry, *xs, *self.captured), attrs)
        shapes = [(len(places), *aval.shape) for aval in self.returned[count:]]
        stacked = [
            _emit_one(builder, reshape, (y,), shape=shape, order="C")
            for y, shape in zip(results[count:], shapes, strict=True)
        ]
        return results[:count], stacked

    def sort_in_loop_order(self, steps: Sequence) -> Sequence:
        """The steps in the order of the loop."""
        return steps[::-1] if self.is_reverse else steps

    def run_steps(self, builder: LetBuilder, carry: Sequence, slices: Sequence, captured) -> tuple:
        """(carry, results) of consecutive steps on these slices."""
        results, count = [], len(self.carry)
        for xs in slices:
            step_results = builder.inline(self.body, (*carry, *xs, *captured))
            carry = step_results[:count]
            results.append(step_results[count:])
        ys = (
            zip(*self.sort_in_loop_order(results), strict=True)
            if results
            else [()] * len(self.stacked_types)
        )
        return carry, [
            _stack_results(builder, parts, kind)
            for parts, kind in zip(ys, self.stacked_types, strict=True)
        ]

    @property
    def stacked_types(self) -> list[ArrayType]:
        """The types of the per-step results."""
        return self.returned[len(self.carry) :]


def scan_steps(bind: Bind) -> _ScanSteps | None:
    """The steps of a ``scan``; None if their number or types are unknown."""
    attrs, args = bind.attrs, bind.args
    start, end = attrs["n_carry"], attrs["n_carry"] + attrs["n_xs"]
    xs, length, outs = args[start:end], attrs["length"], [b.type for b in bind.binders]
    if None in outs or any(type(x) is not Local or x.type is None for x in xs):
        return None
    sizes = {x.type.shape[0] for x in xs} | (set() if length is None else {length})
    slices = [x.type.with_shape(x.type.shape[1:]) for x in xs]
    carried = [strong_type(arg.type) for arg in args[:start]]
    added = [aval.with_shape(aval.shape[1:]) for aval in outs[start:]]
    shapes = [aval.shape for aval in added]
    if not is_static_shape((*sizes, *sum(shapes, ()))):
        return None
    return _ScanSteps(
        attrs["body"],
        args[:start],
        xs,
        args[end:],
        sizes.pop(),
        attrs["reverse"],
        [*carried, *slices, *[arg.type for arg in args[end:]]],
        [*carried, *added],
    )


def _emit_one(builder: LetBuilder, op: Primitive, args: tuple, **attrs) -> Local:
    """The only result of an operation."""
    return builder.emit(op, args, Attrs(attrs))[0]


def _initial_carry(builder: LetBuilder, arg: Arg, aval: ArrayType) -> Arg:
    """The initial carry; a Python number becomes a scalar of type ``aval``, as in the loop."""
    return arg if arg.type is aval else _emit_one(builder, cast, (arg,), dtype=aval.dtype)


def _stack_results(builder: LetBuilder, parts: Sequence, aval: ArrayType) -> Local:
    """The results of the steps, stacked into one array."""
    if not parts:
        return _emit_one(builder, zeros, (), shape=(0, *aval.shape), dtype=aval.dtype)
    return _emit_one(builder, stack, tuple(parts), axis=0)


def _concatenate_stacked(builder: LetBuilder, parts: Sequence) -> Local:
    """Several arrays of stacked results, concatenated."""
    if len(parts) == 1:
        return parts[0]
    return _emit_one(builder, concatenate, tuple(parts), axis=0, dtype=None)
