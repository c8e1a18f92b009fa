"""The programs of ``lt.scan``: one bind, with one or several steps in a trip, or a few binds around
segments that the backward pass recomputes.
"""

from collections.abc import Callable, Sequence

from attrs import frozen

from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Lambda, Local, Source
from letir.ops.autodiff.checkpoint_and_custom_jvp import checkpoint


@frozen(eq=False)
class ScanLoop:
    """A loop to be emitted. ``unroll``: the number of steps in a trip."""

    body: Lambda
    n_carry: int
    n_lifted: int
    reverse: bool
    source: Source | None
    unroll: int = 1

    def emit(self, builder: LetBuilder, operands: Sequence, length: int | None) -> tuple:
        """The loop on these operands, with the remaining steps after the last full trip.

        ``length``: None for a symbolic number of steps, which cannot be unrolled.
        """
        if self.unroll == 1 or not length:
            return self._scan(builder, operands, length, self.body)
        if self.unroll >= length:  # without a loop
            return builder.call(self._steps_in_a_row(operands, length), operands)
        return self._loop_over_segments(
            builder, operands, length, self.unroll, self._steps_in_a_row
        )

    def emit_checkpointed(
        self, builder: LetBuilder, operands: Sequence, length: int, every: int
    ) -> tuple:
        """A loop over segments of ``every`` steps, of which the backward pass keeps the carry."""
        return self._loop_over_segments(builder, operands, length, every, self._checkpointed_steps)

    def _scan(self, builder, operands: Sequence, length: int | None, body: Lambda) -> tuple:
        op = PRIMITIVES["scan"]
        attrs = {"body": body, "n_carry": self.n_carry, "length": length, "reverse": self.reverse}
        attrs["n_xs"] = len(operands) - self.n_carry - self.n_lifted
        return builder.apply(op, operands, op.complete(attrs))

    # ---- segments: programs of consecutive steps ----

    def _checkpointed_steps(self, operands: Sequence, length: int) -> Lambda:
        """The program of ``length`` steps on operands of these types, as one checkpoint."""
        inner = self._program(operands, lambda b, params: self.emit(b, params, length))
        attrs = checkpoint.complete({"body": inner, "saved": 0})
        return self._program(operands, lambda b, params: b.apply(checkpoint, params, attrs))

    def _steps_in_a_row(self, operands: Sequence, length: int) -> Lambda:
        """The program of ``length`` steps on operands of these types, without a loop."""

        def steps(builder: LetBuilder, params: Sequence) -> tuple:
            carry, xs, lifted = self._parts(params)
            rows = []
            for i in reversed(range(length)) if self.reverse else range(length):
                results = builder.call(self.body, [*carry, *[x[i] for x in xs], *lifted])
                carry = results[: self.n_carry]
                rows.append(results[self.n_carry :])
            if self.reverse:
                rows.reverse()
            return (*carry, *[PRIMITIVES["stack"](ys) for ys in zip(*rows, strict=True)])

        return self._program(operands, steps)

    def _program(self, operands: Sequence, emit: Callable) -> Lambda:
        builder = LetBuilder()
        builder.source = self.source
        params = [builder.param(value.type, value.arg.name) for value in operands]
        return builder.build(emit(builder, params))

    def _parts(self, operands: Sequence) -> tuple[Sequence, Sequence, Sequence]:
        """The operands as carry, arrays over which the loop runs, and captured values."""
        end = len(operands) - self.n_lifted
        return operands[: self.n_carry], operands[self.n_carry : end], operands[end:]

    def _loop_over_segments(
        self, builder: LetBuilder, operands: Sequence, n: int, every: int, segment: Callable
    ) -> tuple:
        """A loop over segments of ``every`` steps, and a shorter one for the remaining steps."""
        count, rest = divmod(n, every)
        carry, xs, lifted = self._parts(operands)
        parts: list[Sequence] = []  # parts of the ys, in the order in which they are computed
        if count:  # the segments, which come first in the order of the loop
            rows = [x[rest:] if self.reverse else x[: n - rest] for x in xs] if rest else xs
            rows = [x.reshape((count, every, *x.shape[1:])) for x in rows]
            slices = [_element_of(x) for x in rows]
            body = segment([*carry, *slices, *lifted], every)
            outs = self._scan(builder, [*carry, *rows, *lifted], count, body)
            carry = outs[: self.n_carry]
            ys = outs[self.n_carry :]
            parts.append([y.reshape((n - rest, *y.shape[2:])) for y in ys])
        if rest or not count:
            rows = [x[:rest] if self.reverse else x[n - rest :] for x in xs]
            segment_operands = [*carry, *rows, *lifted]
            outs = builder.call(segment(segment_operands, rest), segment_operands)
            carry = outs[: self.n_carry]
            parts.append(outs[self.n_carry :])
        if self.reverse:
            parts.reverse()
        if len(parts) == 1:
            return (*carry, *parts[0])
        return (*carry, *[PRIMITIVES["concatenate"](pair) for pair in zip(*parts, strict=True)])


def _element_of(x: Value) -> Value:
    """A stand-in for one element of ``x``, with its type and name."""
    return Value(x.emitter, Local(x.type.with_shape(x.shape[1:]), x.arg.name))
