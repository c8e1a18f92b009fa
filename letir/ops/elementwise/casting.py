"""Operations that keep the elements of their operand: cast, weaken, copy, stop_gradient,
barrier.
"""

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.record_fields import SeveralBinds, never
from letir.ast.types import WEAK, ArrayType, requested_dtype
from letir.errors import DTypeError
from letir.ops.as_numpy import arrays
from letir.ops.define.batch_rules import identity_batch, pointwise_rule
from letir.ops.define.records import cast_cotangent, define, unbroadcast

# ---- another dtype ----


def _cast_prepare(x, dtype, order="K", casting="unsafe", subok=True, copy=True):
    """``ndarray.astype``: ``casting`` is checked here; memory order and ``subok`` do not matter."""
    dtype = requested_dtype(dtype)
    if x.type is not None and not np.can_cast(x.dtype, dtype, casting):
        raise DTypeError(
            f"astype: cannot cast {x.dtype} to {dtype} with casting={casting!r}\n"
            "  write casting='unsafe' if the loss is intended"
        )
    return (x,), {"dtype": dtype}


def _cast_impl(xp, x, *, dtype):
    """``x`` in another dtype."""
    if not hasattr(x, "astype"):  # a weak operand may be a Python number at run time
        return xp.asarray(x, dtype)[()]
    if x.dtype.kind == "c" and dtype.kind not in "cb":  # NumPy warns of the imaginary part
        return LATE_BOUND["call_at_user"](x.astype, dtype)
    return x.astype(dtype)


cast = define(
    "cast",
    _cast_impl,
    lambda x, *, dtype: x.with_dtype(dtype),
    # a cast to integers is piecewise constant
    vjp=lambda ct, y, x, *, dtype: (unbroadcast(ct, x) if dtype.kind in "fc" else None,),
    jvp=lambda t, y, x, *, dtype: cast_cotangent(t[0], dtype) if dtype.kind in "fc" else None,
    prepare=_cast_prepare,
    batch=pointwise_rule("cast"),
    elementwise=True,
    scalar="cast",
    reusable=True,
    onnx="Cast",
    source=arrays.cast,
    exact=True,
    odd_in=(0,),
    only_float_warnings=True,
    casts_operands=True,
    order="first",
    compact="array",
    cost="cheap",
)


def _weaken_aval(x):
    """The weak type of the Python number that ``x.item()`` returns."""
    return WEAK[type(np.zeros((), x.dtype).item())]


weaken = define(
    "weaken",
    lambda xp, x: x.item() if hasattr(x, "item") else x,
    _weaken_aval,
    vjp=lambda ct, y, x: (unbroadcast(ct, x),),
    jvp=lambda t, y, x: t[0],
    batch=identity_batch,  # a batch of Python numbers is an array already
    source=arrays.weaken,
    memory="may_alias",
    cost="free",
    for_scripts=False,
    moves_elements=1,
    only_float_warnings=True,
)


# ---- copies and identities ----


def _copy_prepare(a, order="K", subok=False):
    """np.copy. The memory order is kept, since it decides whether a reshape of the copy is a
    view.
    """
    is_row = a.type is not None and a.type.ndim < 2 if isinstance(a, Value) else True
    return (a,), {"order": "K" if is_row else order}


def _copy_call(a, order="K", subok=False):
    """np.copy, which makes a 0-d array of a scalar."""
    if hasattr(a, "is_scalar") and a.is_scalar():
        raise SeveralBinds(lambda: PRIMITIVES["full"]((), a))
    return _copy_prepare(a, order)


def _copy_impl(xp, x, *, order="K"):
    """A copy, like the method: of a scalar the scalar."""
    is_scalar = hasattr(x, "dtype") and not isinstance(x, xp.ndarray)
    return x if is_scalar else xp.array(x, copy=True, order=order)


def _copy_source(write, x, *, order):
    """np.copy, or the method where the operand may be a scalar, which the method keeps."""
    is_scalar = write.is_array(0) and not write.type(0).shape
    return f"{x}.copy()" if is_scalar else write.numpy_call(x, order=order)


copy = define(
    "copy",
    _copy_impl,
    lambda x, *, order: ArrayType(x.dtype, x.shape),
    vjp=lambda ct, y, x, *, order: (ct,),
    jvp=lambda t, y, x, *, order: t[0],
    prepare=_copy_prepare,
    numpy={np.copy: _copy_call},
    batch=pointwise_rule("copy"),
    source=_copy_source,
    reusable=True,
    onnx="Identity",
    never_fails="biuf",
    only_float_warnings=True,
    order="first",
    compact="array",
    cost="cheap",
    no_float_errors=True,
    write_through="own",
    moves_elements=1,
    role="copy",
)
stop_gradient = define(
    "stop_gradient",
    lambda xp, x: x,
    lambda x: x,
    vjp=never("its purpose is to stop derivatives"),
    jvp=never("its purpose is to stop derivatives"),
    batch=pointwise_rule("stop_gradient"),
    elementwise=True,
    scalar="stop_gradient",
    onnx="Identity",
    source=arrays.operand_itself,
    memory="may_alias",
    cost="free",
    write_through=lambda parent, new: new,
)
# an identity that passes do not see through: it keeps common subexpression elimination from
# undoing rematerialisation
barrier = define(
    "barrier",
    lambda xp, x: x,
    lambda x: x,
    vjp=lambda ct, y, x: (ct,),
    jvp=lambda t, y, x: t[0],
    batch=pointwise_rule("barrier"),
    onnx="Identity",
    source=arrays.operand_itself,
    role="barrier",
    memory="may_alias",
    cost="free",
    moves_elements=1,
)
