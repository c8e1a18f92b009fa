"""Operations for code that writes in place: ``write_back``, ``guard_order`` and ``complex_of``.

``write_back`` writes new contents into an array of the caller. ``guard_order`` checks the memory
order of an argument, which decides whether a reshape is a view. ``complex_of`` joins real and
imaginary parts. All other writes are recorded as ``index_set`` and ``index_add``, which return new
values. See docs/in_place.md.
"""

import operator
from typing import Any

import numpy as np

from letir.ast.record_fields import never
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType, broadcast_shapes
from letir.errors import GuardError, ShapeError
from letir.ops.as_numpy import argument_writes
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import define, unbroadcast
from letir.ops.shape.shape_and_creation import zeros_like

# ---- writes to arguments ----


def _write_back_impl(xp, x, new):
    """Write ``new`` into the caller's array ``x`` and return ``x``; return ``new`` for a scalar."""
    # a scalar, a constant; CuPy has no read-only arrays
    if not isinstance(x, xp.ndarray) or not getattr(x.flags, "writeable", True):
        return new
    x[...] = new
    return x


def _write_back_aval(x, new):
    """The type of ``x``, which ``new`` must have too."""
    if (x.dtype, x.shape) != (new.dtype, new.shape):
        raise ShapeError(
            f"write_back: {new} cannot be the new contents of {x}\n"
            "  write values of the argument's type and shape"
        )
    return ArrayType(x.dtype, x.shape)


write_back = define(
    "write_back",
    _write_back_impl,
    _write_back_aval,
    vjp=lambda ct, y, x, new: (None, unbroadcast(ct, new)),
    jvp=lambda t, y, x, new: zeros_like(y) if t[1] is None else t[1],
    batch=lambda args, axes: (args[1], axes[1]),  # transforms change no arguments
    effect=True,
    source=argument_writes.write_back,
    role="write_back",
    memory="may_alias",
    write_through="read_only",
)


def changed_params(fn: Lambda) -> tuple[int, ...]:
    """The positions of the parameters into whose arrays the program writes."""
    return fn.memo(_changed_params)


def _changed_params(fn: Lambda) -> tuple[int, ...]:
    if write_back not in map(operator.attrgetter("op"), fn.binds):
        return ()
    changed = {bind.args[0] for bind in fn.binds if bind.op is write_back}
    return tuple([i for i, param in enumerate(fn.params) if param in changed])


# ---- memory order ----


def order_of(x: Any) -> "str | tuple":
    """The memory order of an array: "C", "F", or its strides."""
    if not hasattr(x, "flags") or x.flags.c_contiguous:
        return "C"
    return "F" if x.flags.f_contiguous else tuple(x.strides)


def _guard_order_impl(xp, x, *, order):
    """Raise GuardError if the memory order of ``x`` differs from that in the trace."""
    current = order_of(x)
    # an array with axes of length 1 can be in C and F order at once
    if current != order and not (order == "F" and hasattr(x, "flags") and x.flags.f_contiguous):
        raise GuardError(
            f"the program was recorded for an argument in memory order {order!r}, now it is "
            f"{current!r}: a reshape is a view of one and a copy of the other\n"
            "  trace again with this argument, or copy it before it is reshaped"
        )
    return ()


guard_order = define(
    "guard_order",
    _guard_order_impl,
    lambda x, *, order: (),
    vjp=never("it has no result"),
    jvp=never("it has no result"),
    batch=lambda args, axes, *, order: ((), ()),  # an example is not an array of the caller
    results=lambda **_: 0,
    effect=True,
    source=argument_writes.guard_order,
    guards=True,
)

# ---- complex numbers ----

_DOUBLES = frozenset([float, np.float64])


def _complex_of_impl(xp, re, im):
    """Both parts exactly: ``re + 1j * im`` would turn inf into nan and -0.0 into 0.0."""
    if type(re) in _DOUBLES and type(im) in _DOUBLES:
        return xp.complex128(complex(re, im))
    is_array = isinstance(re, xp.ndarray) or isinstance(im, xp.ndarray)
    re, im = xp.broadcast_arrays(re, im)
    out = xp.empty_like(re, dtype=xp.result_type(re, im, xp.complex64))
    out.real[...], out.imag[...] = re, im
    return out if is_array else out[()]


def _complex_of_aval(re, im):
    """The complex dtype with the precision of the parts."""
    dtype = np.result_type(re.dtype, im.dtype, np.complex64)
    return ArrayType(dtype, broadcast_shapes(re.shape, im.shape))


def _complex_of_jvp(tangents, y, re, im):
    """``complex_of`` the tangents, zeros for None."""
    zero = zeros_like(y).real
    return complex_of(*[zero if t is None else t for t in tangents])


complex_of = define(
    "complex_of",
    _complex_of_impl,
    _complex_of_aval,
    vjp=lambda ct, y, re, im: (unbroadcast(ct, re), unbroadcast(ct * 1j, im)),
    jvp=_complex_of_jvp,
    batch=pointwise_rule("complex_of"),
    source=argument_writes.complex_of,
    order="first",
)
