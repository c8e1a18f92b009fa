"""Random numbers of distributions with parameters: composites of ``random_draw`` and arithmetic.

They are reparameterised: the derivative with respect to a parameter is taken at fixed random bits,
which the rule draws again with the same key.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.types import PYTHON_NUMBERS, ArrayType, broadcast_shapes, number_dtype
from letir.errors import DTypeError, ShapeError
from letir.ops.define.records import composite, result_dtype
from letir.ops.elementwise.comparisons_and_where import less
from letir.ops.elementwise.ufuncs import log
from letir.ops.random.keys_and_draws import NO_ONNX, as_key, check_key, random_draw
from letir.ops.reductions.reductions import argmax, reduced_shape
from letir.ops.shape.shape_and_creation import Sizes, as_size, runtime_shape, shape_operands
from letir.ops.shape.transpose import move_axes

# ---- shapes and dtypes ----


def parameter_type(x: Any) -> ArrayType:
    """The type of a parameter: a Value, an array, or a Python number, which is weak."""
    if isinstance(x, Value):
        if x.type is None:
            raise ShapeError(
                "random: the type of a parameter is not known\n"
                "  give the program types: letir.retype"
            )
        return x.type
    if type(x) in (int, float):
        return ArrayType(type(x), (), True)
    array = x if hasattr(x, "dtype") else np.asarray(x)
    return ArrayType(array.dtype, array.shape)


def draw_call(key: Any, parameters: tuple, shape: Any, dtype: Any) -> tuple[tuple, dict]:
    """(operands, attributes) of a draw; a ``shape`` of None is the broadcast parameter shape."""
    avals = [parameter_type(p) for p in parameters]
    if shape is None:
        shape = broadcast_shapes(*[aval.shape for aval in avals])
        if not is_static_shape(shape):
            shape = next(p for p in parameters if parameter_type(p).shape == shape)
    sizes, shape = shape_operands(shape)
    return (key, *parameters, *sizes), {"shape": shape, "dtype": _draw_dtype(avals, dtype)}


def _draw_dtype(avals: list[ArrayType], dtype) -> np.dtype:
    """``dtype``, or the dtype of the parameters: float64 for integers and Python numbers.

    Raises DTypeError unless it is floating.
    """
    result = result_dtype(*avals) if dtype is None else number_dtype(dtype)
    if dtype is None and result.kind in "biu":
        return np.dtype(float)
    if result.kind != "f":
        raise DTypeError(
            f"random numbers must have a floating dtype, found {result}\n"
            "  write dtype=np.float64, or leave it out"
        )
    return result


def draw_numbers(key: Any, distribution: str, sizes: tuple, shape: Any, dtype: Any) -> Value:
    """``random_draw`` in the shape given by the operand ``sizes``, or the attribute ``shape``."""
    size = Sizes(sizes[0], shape) if sizes else shape
    return random_draw(as_key(key), distribution, size, dtype)


def cast_parameter(x: Any, dtype: np.dtype) -> Any:
    """A parameter in the dtype of the draw; a Python number is unchanged, as it promotes weakly."""
    is_number = x.type.weak if isinstance(x, Value) else not hasattr(x, "dtype")
    return x if is_number else x.astype(dtype, copy=False)


def draw_type_rule(count: int, result: Any = None) -> Callable:
    """The type rule of a draw with ``count`` parameters, which must broadcast to its shape.

    ``result``: the dtype of the result, if it differs from the dtype of the draw.
    """

    def aval(key, *types, shape, dtype):
        check_key(key)
        parameters = types[:count]
        if shape is None:
            return None
        common = broadcast_shapes(shape, *[kind.shape for kind in parameters])
        if common != shape:
            raise ShapeError(
                f"parameters of shape {common} do not broadcast to the shape {shape}\n"
                "  choose a shape that ends in the shape of the rows"
            )
        return ArrayType(result or dtype, (*key.shape[:-1], *shape))

    return aval


def define_distribution(
    name: str, decompose: Callable, *, parameters: int, result: Any = None, **fields: Any
) -> Primitive:
    """Register a composite that draws with a key and ``parameters`` parameters.

    ``result``: the dtype of the result, if it differs from the dtype of the draw.
    """

    def impl(xp, key, *operands, shape, dtype):
        # decompose on the arrays themselves: the recorded shape may have symbolic sizes
        shape = runtime_shape(shape, operands[parameters:])
        values = operands[:parameters]
        if xp.__name__ != "numpy":  # on a device, operations between numbers stay there too
            values = [xp.asarray(x) if type(x) in PYTHON_NUMBERS else x for x in values]
        return decompose(key, *values, shape=shape, dtype=dtype)

    aval = draw_type_rule(parameters, result)
    return composite(name, decompose, impl=impl, aval=aval, random=True, onnx=NO_ONNX, **fields)


# ---- floating numbers ----


def _normal_decompose(key, loc, scale, *sizes, shape, dtype):
    """loc + scale * z."""
    z = draw_numbers(key, "normal", sizes, shape, dtype)
    return cast_parameter(loc, dtype) + cast_parameter(scale, dtype) * z


random_normal = define_distribution(
    "random_normal",
    _normal_decompose,
    parameters=2,
    prepare=lambda key, shape=None, loc=0.0, scale=1.0, dtype=None: draw_call(
        key, (loc, scale), shape, dtype
    ),
)


def _uniform_decompose(key, low, high, *sizes, shape, dtype):
    """low + (high - low) * u."""
    u, low = draw_numbers(key, "uniform", sizes, shape, dtype), cast_parameter(low, dtype)
    return low + (cast_parameter(high, dtype) - low) * u


random_uniform = define_distribution(
    "random_uniform",
    _uniform_decompose,
    parameters=2,
    prepare=lambda key, shape=None, low=0.0, high=1.0, dtype=None: draw_call(
        key, (low, high), shape, dtype
    ),
)
random_exponential = define_distribution(
    "random_exponential",
    lambda key, scale, *sizes, shape, dtype: (
        cast_parameter(scale, dtype) * draw_numbers(key, "exponential", sizes, shape, dtype)
    ),
    parameters=1,
    prepare=lambda key, shape=None, scale=1.0, dtype=None: draw_call(key, (scale,), shape, dtype),
)

# ---- choices ----


def _bernoulli_decompose(key, p, *sizes, shape, dtype):
    """u < p, for a uniform number u."""
    return less(draw_numbers(key, "uniform", sizes, shape, dtype), cast_parameter(p, dtype))


random_bernoulli = define_distribution(
    "random_bernoulli",
    _bernoulli_decompose,
    parameters=1,
    result=bool,
    prepare=lambda key, p=0.5, shape=None: draw_call(key, (p,), shape, None),
)


def _randint_decompose(key, low, high, *sizes, shape, dtype):
    """low + bits % (high - low): the bias is below (high - low) / 2**64."""
    bits = draw_numbers(key, "bits", sizes, shape, np.uint64)
    span = high - low
    span = span.astype(np.uint64) if hasattr(span, "dtype") else span
    return ((bits % span).astype(np.int64) + low).astype(dtype)


def _randint_prepare(key, shape, low, high, dtype=np.int64):
    """Integers from ``low`` up to, but not including, ``high``."""
    for bound in (low, high):
        if parameter_type(bound).dtype.kind not in "iu":
            raise DTypeError(
                f"randint: bounds must be integers, found {parameter_type(bound)}\n"
                "  convert them with .astype(int)"
            )
    if type(low) is int and type(high) is int and low >= high:
        raise ShapeError(
            f"randint: low >= high, {low} >= {high}\n  pass the bounds in this order: low, high"
        )
    number_type = number_dtype(np.int64 if dtype is None else dtype)
    if number_type.kind not in "iu":
        raise DTypeError(
            f"randint: the dtype must be an integer one, found {number_type}\n"
            "  write dtype=np.int64, or convert the result with .astype"
        )
    operands, attrs = draw_call(key, (low, high), shape, float)
    return operands, {**attrs, "dtype": number_type}


random_randint = define_distribution(
    "random_randint", _randint_decompose, parameters=2, prepare=_randint_prepare
)


def _categorical_decompose(key, logits, *, axis, shape):
    """The index of the largest of logits + Gumbel noise, which is -log of exponential numbers.

    Gumbel, Statistical theory of extreme values, 1954.
    """
    logits = move_axes(logits, axis, -1)
    size = logits if shape is None else (*shape, logits.shape[-1])
    noise = random_draw(as_key(key), "exponential", size, logits.dtype)
    return argmax(logits - log(noise), axis=-1)


def _categorical_aval(key, logits, *, axis, shape):
    """An index along the axis for each row of logits, or for each element of ``shape``."""
    check_key(key)
    if logits.dtype.kind != "f":
        raise DTypeError(
            f"categorical: logits must be floating, found {logits}\n"
            "  convert them with .astype(float)"
        )
    rows = reduced_shape(logits.shape, axis, False)
    if shape is not None and broadcast_shapes(shape, rows) != shape:
        raise ShapeError(
            f"categorical: logits of {rows} rows do not broadcast to {shape}\n"
            "  choose a shape that ends in the shape of the rows"
        )
    return ArrayType(np.intp, (*key.shape[:-1], *(rows if shape is None else shape)))


random_categorical = composite(
    "random_categorical",
    _categorical_decompose,
    aval=_categorical_aval,
    prepare=lambda key, logits, axis=-1, shape=None: (
        (key, logits),
        {"axis": as_size(axis), "shape": None if shape is None else shape_operands(shape)[1]},
    ),
    random=True,
    onnx=NO_ONNX,
)
