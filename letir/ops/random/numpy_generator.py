"""A ``numpy.random.Generator`` as an argument of a traced function: its state is a value.

In pytrees of arguments a generator is a node whose leaf is its state, an array. Each method of the
traced generator draws from the state and writes the next one into it, as into an array. A replay
draws NumPy's numbers, and leaves the caller's generator in the state that NumPy would.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import optree

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.pytrees import NAMESPACE, Leaf, Static
from letir.ast.record_fields import never
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.types import ArrayType, broadcast_shapes, number_dtype
from letir.errors import MissingRule, ShapeError, TraceError
from letir.ops import LateModule
from letir.ops.define.records import broadcast_tangent, define, unbroadcast
from letir.ops.indexing.basic import index
from letir.ops.random import generator_states
from letir.ops.random.cached_generators import generator_of, state_of
from letir.ops.random.distributions import parameter_type
from letir.ops.random.generator_states import state_array
from letir.ops.shape.shape_and_creation import as_size
from letir.ops.shape.transpose import normalize_axes
from letir.ops.special.gamma_gradient import gamma_slope


def _state_in(traced) -> tuple:
    """The children of a traced generator in a pytree."""
    return [traced.state], None, ["state"]


def _register_node(cls: type) -> None:
    """Register generators of class ``cls`` as pytree nodes whose leaf is the state."""

    def children(generator):
        return [state_array(generator)], None, ["state"]

    traced: Any = LATE_BOUND["traced_class"](cls)

    def rebuild(_, leaves):
        (state,) = leaves
        if isinstance(state, Value):
            return traced(state)
        if type(state) in (Leaf, Static) or state is None:
            return None
        return generator_of(state)

    optree.register_pytree_node(cls, children, rebuild, namespace=NAMESPACE)
    # optree compares types by qualified name; a program called in a trace gets a traced generator
    traced.__qualname__ = cls.__qualname__
    optree.register_pytree_node(traced, _state_in, rebuild, namespace=NAMESPACE)


LATE_BOUND["generator_node"] = _register_node

_draws_from_lists: Any = LateModule("letir.ops.random.draws_from_lists")

# ---- one draw ----

# method -> its parameters with their defaults (None: required); `size` follows them
_CONTINUOUS: dict[str, dict[str, float | None]] = {
    "random": {},
    "standard_normal": {},
    "standard_exponential": {},
    "standard_cauchy": {},
    "standard_gamma": {"shape": None},
    "standard_t": {"df": None},
    "beta": {"a": None, "b": None},
    "chisquare": {"df": None},
    "noncentral_chisquare": {"df": None, "nonc": None},
    "f": {"dfnum": None, "dfden": None},
    "laplace": {"loc": 0.0, "scale": 1.0},
    "logistic": {"loc": 0.0, "scale": 1.0},
    "gumbel": {"loc": 0.0, "scale": 1.0},
    "lognormal": {"mean": 0.0, "sigma": 1.0},
    "rayleigh": {"scale": 1.0},
    "weibull": {"a": None},
    "pareto": {"a": None},
    "power": {"a": None},
    "vonmises": {"mu": None, "kappa": None},
    "wald": {"mean": None, "scale": None},
    "triangular": {"left": None, "mode": None, "right": None},
}
_DISCRETE: dict[str, dict[str, float | None]] = {
    "integers": {"low": None, "high": None},
    "poisson": {"lam": 1.0},
    "binomial": {"n": None, "p": None},
    "negative_binomial": {"n": None, "p": None},
    "geometric": {"p": None},
    "zipf": {"a": None},
    "logseries": {"p": None},
    "permutation": {"n": None},
    "choice": {"p": None},
}
_STORED = ("random", "standard_normal", "standard_exponential", "standard_gamma")  # take a dtype
_NO_FORM = never("the numbers are not a differentiable function of this distribution's parameters")


def _generator_draw_impl(xp, state, *operands, method, shape, dtype, options=()):
    """(numbers drawn by the generator's ``method``, the next state)."""
    return _draw_on_host(state, operands, method, shape, dtype, dict(options))


def _draw_on_host(state, operands: tuple, method: str, shape, dtype, options: dict) -> tuple:
    """A draw, on the host: its result and the next state."""
    generator = generator_of(state)
    result = numbers_of(generator, operands, method, shape, dtype, options)
    return result, state_of(generator)


def numbers_of(
    generator: Any, operands: tuple, method: str, shape: tuple, dtype: np.dtype, options: dict
) -> Any:
    """The numbers that a generator draws by one of its methods."""
    # a RandomState draws in double precision only
    keywords = {} if hasattr(generator, "set_state") else {"dtype": dtype}
    if method == "permutation":
        result = generator.permutation(options["n"])
    elif method == "permuted":  # places along the axis
        result = generator.permuted(np.indices(shape)[options["axis"]], **options)
    elif method == "choice":
        p = operands[0] if operands else None
        result = generator.choice(size=shape or None, p=p, **options)
    elif method == "multinomial":
        result = generator.multinomial(*operands, size=shape[:-1] or None)
    elif method in ("random", "standard_normal", "standard_exponential", "standard_gamma"):
        result = getattr(generator, method)(*operands, size=shape or None, **keywords, **options)
    elif method in ("integers", "randint"):
        draw = getattr(generator, method)
        result = draw(*operands, size=shape or None, dtype=dtype, **options)
    else:
        result = getattr(generator, method)(*operands, size=shape or None, **options)
    return np.asarray(result, dtype)[()]


def _generator_draw_aval(state, *operands, method, shape, dtype, options):
    """(the declared type, the type of the state)."""
    if method not in ("permutation", "choice", "multinomial"):
        common = broadcast_shapes(shape, *[aval.shape for aval in operands])
        if common != shape:
            raise ShapeError(
                f"{method}: parameters of shape {common} do not fit the size {shape}\n"
                "  leave size out, or let it end in the parameters' shape"
            )
    return ArrayType(dtype, shape), ArrayType(state.dtype, state.shape)


def _generator_draw_vjp(cts, outs, state, *operands, method, **attrs):
    """The implicit derivative for gamma numbers; other distributions have none."""
    if method == "standard_gamma":
        return None, unbroadcast(cts[0] * gamma_slope(operands[0], outs[0]), operands[0])
    return None, *[_NO_FORM] * len(operands)


def _generator_draw_jvp(tangents, outs, state, *operands, method, **attrs):
    """The implicit derivative for gamma numbers; other distributions have none."""
    if method == "standard_gamma":
        return broadcast_tangent(tangents[1] * gamma_slope(operands[0], outs[0]), outs[0]), None
    raise MissingRule(_NO_FORM.reason)


def _generator_draw_source(write, state, *operands, method, shape, dtype, options):
    """A call of ``_draw_on_host``, copied into the module with the functions that it calls."""
    functions = (numbers_of, generator_states.state_of, generator_states.generator_of)
    text = _plain_text(_draw_on_host)
    for f in functions:
        text = text.replace(f"{f.__name__}(", f"{write.helper(_plain_text(f))}(")
    arguments = "".join(f"{operand}, " for operand in operands)
    attrs = ", ".join(map(write.literal, (method, shape, dtype)))
    options = ", ".join(f"{name!r}: {write.literal(value)}" for name, value in options)
    return f"{write.helper(text)}({state}, ({arguments}), {attrs}, {{{options}}})"


def _plain_text(f: Callable) -> str:
    """The source of a function without annotations."""
    return re.sub(r": (Any|tuple|str|dict|np.dtype)\b| -> [\w.]+", "", inspect.getsource(f))


generator_draw = define(
    "generator_draw",
    _generator_draw_impl,
    _generator_draw_aval,
    vjp=_generator_draw_vjp,
    jvp=_generator_draw_jvp,
    batch=never("a generator has one sequence of numbers: map over keys of letir.random"),
    results=lambda **attrs: 2,
    random=True,
    role="draw",
    source=_generator_draw_source,
    onnx=never("ONNX has no generators of NumPy's"),
    raises=True,
)

# ---- the traced generator ----


class TracedGenerator:
    """A ``numpy.random.Generator`` in a trace: its methods record draws from its state."""

    def __init__(self, state: Any):  # a Tracer, into which the next state is written
        self.state = state

    @property  # type: ignore[misc]  # read-only here; read by isinstance in the user's code
    def __class__(self) -> type:
        return np.random.Generator

    def draw(
        self, method: str, operands: tuple, size: Any, dtype: Any = float, /, **options: Any
    ) -> Any:
        """Record one draw; a ``size`` of None is the broadcast shape of the parameters."""
        given_size = size
        operands = tuple([x if type(x) in (int, float) else _as_operand(x) for x in operands])
        if size is None:
            size = broadcast_shapes(*[parameter_type(x).shape for x in operands])
        shape = tuple(map(as_size, size if isinstance(size, tuple | list) else (size,)))
        if not is_static_shape(shape):
            raise TraceError(f"{method}: the size {shape} is symbolic; use letir.random")
        attrs = {"method": method, "shape": shape, "dtype": number_dtype(dtype)}
        attrs["options"] = tuple(options.items())
        result = self.next_numbers(operands, generator_draw.complete(attrs))
        return result if method in ("integers", "randint") else as_number(result, given_size)

    def next_numbers(self, operands: tuple, attrs: Attrs) -> Any:
        """The numbers of one draw, recorded; the state becomes the next one."""
        emitter = self.state.emitter

        def record() -> Any:
            result, state = emitter.apply(generator_draw, (self.state, *operands), attrs)
            self.state[...] = state
            return result

        return LATE_BOUND["record_draw"](emitter, record)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        parameters = _CONTINUOUS.get(name, _DISCRETE.get(name))
        if parameters is None or not hasattr(self.__class__, name):
            if not hasattr(self.__class__, name):
                raise AttributeError(f"a traced generator has no attribute {name!r}")
            draw = LATE_BOUND["vector_draw"](self, name)
            if draw is not None:
                return draw
            raise MissingRule(
                f"{self.__class__.__name__}.{name} is not recorded\n"
                "  draw before the trace and pass the array, or use letir.random with a key"
            )
        dtype = float if name in _CONTINUOUS else np.int64
        kinds = [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 3
        names = [
            inspect.Parameter(p, kinds[0], default=inspect.Parameter.empty if d is None else d)
            for p, d in parameters.items()
        ]
        names.append(inspect.Parameter("size", kinds[0], default=None))
        if name in _STORED and self.__class__ is np.random.Generator:
            names.append(inspect.Parameter("dtype", kinds[0], default=float))
        if name == "standard_exponential" and self.__class__ is np.random.Generator:
            names.append(inspect.Parameter("method", kinds[0], default="zig"))
        signature = inspect.Signature(names)

        def method(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            call = bound.arguments
            options = {"method": call["method"]} if call.get("method", "zig") != "zig" else {}
            operands = tuple([call[p] for p in parameters])
            return self.draw(name, operands, call["size"], call.get("dtype", dtype), **options)

        return method

    def check_parameters(self, name: str, holds: Callable[..., Any], *parameters: Any) -> None:
        """Raise NumPy's error unless ``holds(*parameters)``; records a guard if they are traced."""
        parameters = tuple(map(_as_operand, parameters))
        values = [x.concrete_value() if isinstance(x, Value) else x for x in parameters]
        numbers = (np.ndarray, np.generic, int, float)
        if not all(isinstance(x, numbers) for x in values):
            return  # an abstract trace has no values
        arrays = [x if isinstance(x, Value) and x.shape else _array_of(x) for x in parameters]
        if not holds(*arrays):
            getattr(self.__class__(np.random.MT19937(0)), name)(*values)  # raises it

    # location-scale families are recorded as formulas, so that parameters have derivatives; they
    # round exactly as NumPy does

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal numbers."""
        self.check_parameters("normal", lambda _, s: not (s < 0).any(), loc, scale)
        numbers = self.draw("standard_normal", (), _common_size(size, loc, scale))
        return as_number(_as_operand(loc) + _as_operand(scale) * numbers, size)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Numbers in [low, high)."""
        self.check_parameters("uniform", _is_range, low, high)
        low, high = _as_operand(low), _as_operand(high)
        numbers = self.draw("random", (), _common_size(size, low, high))
        return as_number(low + (high - low) * numbers, size)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Exponential numbers."""
        self.check_parameters("exponential", lambda s: not (s < 0).any(), scale)
        numbers = self.draw("standard_exponential", (), _common_size(size, scale))
        return as_number(_as_operand(scale) * numbers, size)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        """Gamma numbers."""
        self.check_parameters("gamma", lambda _, s: not (s < 0).any(), shape, scale)
        numbers = self.draw("standard_gamma", (shape,), _common_size(size, shape, scale))
        return as_number(_as_operand(scale) * numbers, size)

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = np.int64,
        endpoint: bool = False,
    ) -> Any:
        """Integers from ``low`` up to, but not including, ``high``, unless ``endpoint``."""
        low, high = (0, low) if high is None else (low, high)
        options = {"endpoint": True} if endpoint else {}
        return self.draw("integers", (low, high), size, dtype, **options)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """``x`` in random order along ``axis``; for an int n, the numbers below n."""
        x = _as_operand(x)
        if np.ndim(x) == 0:
            return self.draw("permutation", (), as_size(x), np.int64, n=as_size(x))
        (axis,) = normalize_axes(axis, x.ndim)
        order = self.draw("permutation", (), x.shape[axis], np.int64, n=x.shape[axis])
        return elements_at(x, order, axis)

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        """Random elements of the array ``a``, or numbers below the int ``a``."""
        a = _as_operand(a)
        (place,) = normalize_axes(axis, np.ndim(a)) if np.ndim(a) else (None,)
        n = as_size(a) if place is None else np.shape(a)[place]
        options = {"a": n, "replace": bool(replace), "shuffle": bool(shuffle)}
        places = self.draw("choice", () if p is None else (p,), size or (), np.int64, **options)
        return as_number(places, size) if place is None else elements_at(a, places, place)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Put the traced array or the list ``x`` in random order along ``axis``, in place."""
        if isinstance(x, list):
            _draws_from_lists.shuffle_list(self, x)
        else:
            x[...] = self.permutation(x, axis)


def _array_of(x: Any) -> Any:
    """A parameter with the methods of arrays."""
    return x if hasattr(x, "dtype") else np.asarray(x)


def _is_range(low: Any, high: Any) -> Any:
    """Whether numbers between these bounds can be drawn."""
    return np.isfinite(high - low).all() and (high >= low).all()


def as_number(numbers: Any, size: Any) -> Any:
    """The draw as a Python number, which promotes weakly, if no ``size`` was given."""
    return PRIMITIVES["weaken"](numbers) if size is None and not numbers.shape else numbers


def elements_at(x: Any, places: Any, axis: int) -> Any:
    """``x`` at these places along ``axis``."""
    if not _draws_from_lists.is_of_numbers(x):
        return _draws_from_lists.choose_objects(x, places, axis)
    return index(x, (*[slice(None)] * axis, places))


def _as_operand(x):
    """A parameter as a traced value, an array or a Python number."""
    if isinstance(x, Value) or type(x) in (int, float):
        return x
    return _draws_from_lists.array_of_list(x) if isinstance(x, list | tuple) else np.asarray(x)


def _common_size(size: Any, *parameters: Any) -> Any:
    """``size``, or the broadcast shape of the parameters if it is None."""
    if size is not None:
        return size
    return broadcast_shapes(*[np.shape(_as_operand(p)) for p in parameters])
