"""The programs of ``lt.scan``: one bind, or a few around segments of steps."""

from collections.abc import Callable, Sequence

from attrs import frozen

from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Lambda, Local, Source
from letir.ops.autodiff.checkpoint_and_custom_jvp import checkpoint


@frozen(eq=False)
class ScanLoop:
    """A loop to be emitted, whole or in segments that the backward pass recomputes."""

    body: Lambda
    n_carry: int
    n_lifted: int
    reverse: bool
    source: Source | None

    def emit(self, builder: LetBuilder, operands: Sequence, length: int | None) -> tuple:
        """``scan`` on these operands."""
        return self._scan(builder, operands, length, self.body)

    def _scan(self, builder, operands: Sequence, length: int | None, body: Lambda) -> tuple:
        op = PRIMITIVES["scan"]
        attrs = {"body": body, "n_carry": self.n_carry, "length": length, "reverse": self.reverse}
        attrs["n_xs"] = len(operands) - self.n_carry - self.n_lifted
        return builder.apply(op, operands, op.complete(attrs))

    def segment(self, operands: Sequence, length: int) -> Lambda:
        """The program of ``length`` steps on operands of these types, as one checkpoint."""
        inner = self._program(operands, lambda b, params: self.emit(b, params, length))
        attrs = checkpoint.complete({"body": inner, "saved": 0})
        return self._program(operands, lambda b, params: b.apply(checkpoint, params, attrs))

    def _program(self, operands: Sequence, emit: Callable) -> Lambda:
        builder = LetBuilder()
        builder.source = self.source
        params = [builder.param(value.type, value.arg.name) for value in operands]
        return builder.build(emit(builder, params))

    def in_segments(self, builder: LetBuilder, operands: list, n: int, every: int) -> tuple:
        """A loop over segments of ``every`` steps, and one more for the remaining steps."""
        count, rest = divmod(n, every)
        end = len(operands) - self.n_lifted
        carry: Sequence = operands[: self.n_carry]
        xs, lifted = operands[self.n_carry : end], operands[end:]
        parts: list[Sequence] = []  # parts of the ys, in the order in which they are computed
        if count:  # the segments, which come first in the order of the loop
            rows = [x[rest:] if self.reverse else x[: n - rest] for x in xs]
            rows = [x.reshape((count, every, *x.shape[1:])) for x in rows]
            slices = [_element_of(x) for x in rows]
            body = self.segment([*carry, *slices, *lifted], every)
            outs = self._scan(builder, [*carry, *rows, *lifted], count, body)
            carry = outs[: self.n_carry]
            ys = outs[self.n_carry :]
            parts.append([y.reshape((n - rest, *y.shape[2:])) for y in ys])
        if rest or not count:
            rows = [x[:rest] if self.reverse else x[n - rest :] for x in xs]
            given = [*carry, *rows, *lifted]
            outs = builder.call(self.segment(given, rest), given)
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
