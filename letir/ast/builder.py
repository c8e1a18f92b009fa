"""``LetBuilder``, through which all programs are made, and ``Value``, the operand of rules.

A builder appends binds and infers their types; ``_infer_types`` is the only caller of type rules,
with a cache by (op, types, attrs). A ``Value`` is an operand of an emitter (a builder, a trace, or
an executor that computes immediately), for NumPy's operators, methods and functions.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import NO_ATTRS, Attrs, freeze
from letir.ast.bodies import holds_arrays
from letir.ast.bounded_cache import BoundedCache
from letir.ast.operators import (
    IndexedUpdate,
    binary_operator,
    numpy_method,
    numpy_shape_method,
    reflected_operator,
    unary_operator,
)
from letir.ast.primitive import PRIMITIVES, Primitive, result_count, results_tuple, unwrap_results
from letir.ast.source import error_in_let, error_of_rule
from letir.ast.symbolic_sizes import given_sizes, resize_attrs
from letir.ast.terms import NO_TYPE, Arg, Bind, Const, Lambda, Local, Ret, Source
from letir.ast.types import PYTHON_NUMBERS, ArrayType, Size, UndefType
from letir.errors import DTypeError, InternalError, LetirError, ShapeError

# (op, types, attrs) -> result types; bounded, or types of programs that are gone would stay
_inferred = BoundedCache(1 << 16)
known_types = _inferred.get  # bound once, which makes the look-up as fast as a dict's

_ARGS = frozenset([Local, Const])
_NUMBERS = PYTHON_NUMBERS | {Size}


def result_types(op: Primitive, args: Sequence[Arg], attrs: Attrs) -> tuple[ArrayType | None, ...]:
    """The result types of a bind by the type rule of ``op``; None (unknown) if an operand's is."""
    # tuple([...]), here and wherever a bind is made: a third faster than tuple(...) of a generator
    types = tuple([arg.type for arg in args])
    # the token, not the Attrs: hash and equality of tuples need no Python code
    key = (op, types) if attrs is NO_ATTRS else (op, types, attrs.token)
    result = known_types(key)
    if result is None:
        result = _infer_types(op, types, attrs)
        if attrs is NO_ATTRS or not holds_arrays(attrs):
            _inferred[key] = result
    return result


def _infer_types(op: Primitive, types: tuple, attrs: Attrs) -> tuple[ArrayType | None, ...]:
    """``result_types`` without the cache. Type rules see None for operands None and ``Undef``."""
    if None in types:  # unknown; an operand that is None has NO_TYPE
        return (None,) * result_count(op, attrs)
    try:
        aval_or_avals = op.aval(*[None if aval is NO_TYPE else aval for aval in types], **attrs)
    except AttributeError:
        if NO_TYPE not in types:
            raise
        raise DTypeError(f"{op.name}: an operand is None\n  pass arrays and numbers") from None
    return results_tuple(op, aval_or_avals)


def fresh_binders(
    binders: tuple[Local, ...], names: dict, types: tuple | None = None
) -> tuple[Local, ...]:
    """Fresh locals for ``binders``, entered in ``names``, with the same types unless given."""
    if len(binders) == 1:  # nearly all binds: half the time of the general case
        (old,) = binders
        new = names[old] = Local(old.type if types is None else types[0], old.name)
        return (new,)
    types = tuple([old.type for old in binders]) if types is None else types
    fresh = tuple([Local(kind, old.name) for kind, old in zip(types, binders, strict=True)])
    names.update(zip(binders, fresh, strict=True))
    return fresh


class LetBuilder:
    """Builds one Lambda: ``param`` and ``emit`` add to it, ``build`` completes it.

    Every emitted bind gets the current ``source``.

    >>> from letir import ArrayType
    >>> from letir.extend import PRIMITIVES
    >>> builder = LetBuilder()
    >>> x = builder.param(ArrayType("float64", (2,)), "x")
    >>> y = builder.apply(PRIMITIVES["exp"], (x,))
    >>> print(builder.build([y.arg]))
    lambda %0:x: float64[2] {
      %1: float64[2] = exp(%0)
      return %1
    }
    """

    def __init__(self):
        self.params: list[Local] = []
        self.binds: list[Bind] = []
        self.source: Source | None = None
        self.python_bools: set[Local] = set()  # results of comparisons of Python numbers

    def param(self, type: ArrayType | None = None, name: str | None = None) -> "Value":
        """Add a parameter."""
        local = Local(type, name)
        self.params.append(local)
        return Value(self, local)

    def emit(
        self,
        op: Primitive,
        args: tuple[Arg, ...],
        attrs: Attrs = NO_ATTRS,
        types: tuple[ArrayType | None, ...] | None = None,
    ) -> tuple[Local, ...]:
        """Add the bind ``op(args; attrs)`` and return its binders, typed by the op's type rule
        unless types are given.
        """
        if types is None:
            try:
                types = result_types(op, args, attrs)
            except LetirError as error:
                # no binders yet
                line = LATE_BOUND["line_of"](self, Bind((), op, args, attrs))
                raise error_in_let(error, line, self.source) from None
            except AttributeError as error:
                raise LATE_BOUND["wrong_bind_error"](op, args) or error from None
        binders = tuple([Local(type) for type in types])
        self.binds.append(Bind(binders, op, args, attrs, self.source))
        return binders

    def apply(self, op: Primitive, operands: Iterable, attrs: Attrs = NO_ATTRS) -> Any:
        """``emit`` on Values, arrays and numbers: a Value, or a tuple for several results."""
        binders = self.emit(op, tuple([self.enter(operand) for operand in operands]), attrs)
        return unwrap_results(op, tuple([Value(self, binder) for binder in binders]))

    def sized_values(self) -> list["Value"]:
        """The values whose axes determine the symbolic sizes of this program."""
        return [Value(self, param) for param in self.params]

    def enter(self, operand: Any) -> Arg:
        """``operand`` as an argument of a bind: a local, a constant, or a bound array constant."""
        if isinstance(operand, Value):
            if operand.emitter is not self:
                raise InternalError(f"{operand!r} belongs to another program")
            return operand.arg
        if type(operand) in PYTHON_NUMBERS or operand is None or type(operand) is UndefType:
            return Const(operand)
        if isinstance(operand, np.ndarray | np.generic):
            return self.constant(operand)
        if type(operand) is Size:
            return LATE_BOUND["number_of_size"](operand, self).arg
        raise DTypeError(
            f"{operand!r} of type {type(operand).__name__} is not an operand: use "
            "arrays and numbers"
        )

    def constant(self, array: Any) -> Local:
        """Bind a read-only copy of ``array``; a NumPy scalar needs no copy."""
        return self.bind_constant(freeze(array))

    def bind_constant(self, frozen: Any) -> Local:
        """Bind a read-only array, or a NumPy scalar."""
        # its type is given: a look-up of the type rule's result would hash all elements
        types = (ArrayType(frozen.dtype, frozen.shape),)
        return self.emit(PRIMITIVES["constant"], (), Attrs(value=frozen), types)[0]

    def inline(self, fn: Lambda, args: Sequence[Arg]) -> tuple[Arg, ...]:
        """Append the binds of ``fn`` with ``args`` for its parameters, and return its results.

        Types are inferred again only if an argument differs from its parameter's type.
        """
        names: dict[Local, Arg] = dict(zip(fn.params, args, strict=True))
        # types are interned, so that `is` is equality
        retyped = any(arg.type is not p.type for arg, p in zip(args, fn.params, strict=True))
        types, sizes = None, {}
        if retyped:
            sizes = given_sizes([p.type for p in fn.params], [arg.type for arg in args])
        add, source = self.binds.append, self.source
        for bind in fn.binds:
            operands = tuple([names[a] if type(a) is Local else a for a in bind.args])
            attrs = resize_attrs(bind.attrs, sizes) if sizes else bind.attrs
            if retyped:
                try:
                    types = result_types(bind.op, operands, attrs)
                except (LetirError, RecursionError, MemoryError):
                    raise
                except Exception as error:
                    raise error_of_rule(bind.op, error) from error
            binders = fresh_binders(bind.binders, names, types)
            # attributes and their bodies are shared: bodies are closed and need no renaming
            add(Bind(binders, bind.op, operands, attrs, bind.source or source))
        return tuple([names[a] if type(a) is Local else a for a in fn.ret.args])

    def call(self, fn: Lambda, operands: Iterable) -> tuple:
        """``inline`` on Values, arrays and numbers; results are Values, or constants unchanged."""
        results = self.inline(fn, [self.enter(operand) for operand in operands])
        return tuple([Value(self, r) if type(r) is Local else r.value for r in results])

    def build(self, results: Iterable, in_tree: Any = None, out_tree: Any = None) -> Lambda:
        """The program with these results (Values, locals or constants).

        The builder must not be used afterwards.
        """
        if isinstance(results, Value | Local | Const):  # iterating a Value would record its rows
            raise DTypeError(
                f"build takes a sequence of results, found {results!r}\n  write build([result])"
            )
        if not isinstance(results, Iterable):
            raise DTypeError(
                f"build takes a sequence of results, found {results!r}\n  write build([result])"
            )
        args = tuple(results)
        if not _ARGS.issuperset(map(type, args)):
            args = tuple([r if type(r) in _ARGS else self.enter(r) for r in args])
        return Lambda(self.params, self.binds, Ret(args), in_tree, out_tree)


class Value:
    """An operand of an emitter, for NumPy's operators, methods and functions in rules.

    ``arg`` is the emitter's own operand: a local of a builder, an array of an executor.

    >>> import letir.ops, numpy as np
    >>> from letir import grad
    >>> from letir.extend import primitive
    >>> square = primitive(
    ...     "docs.square",
    ...     impl=lambda xp, x: x * x,
    ...     aval=lambda x: x,
    ...     vjp=lambda ct, y, x: (2 * ct * x,),  # ct, y and x are Values
    ...     jvp=lambda tangents, y, x: 2 * tangents[0] * x,
    ... )
    >>> grad(square)(3.0)
    np.float64(6.0)
    """

    __slots__ = ("arg", "emitter")
    # methods of the subclasses for traced values and Variables, which hold or know arrays
    array: Any
    requires_grad: bool
    concrete_value: Callable[[], Any]
    is_scalar: Callable[[], bool]
    snapshot: Callable[[], "Value"]
    replace: Callable[[Any], "Value"]
    written_back: Callable[[Any], "Value"]
    assign: Callable[..., "Value"]
    __int__: Callable[[], int]
    __array_priority__ = 1000
    __hash__ = None  # == records a comparison, so Values cannot be in sets or dicts

    def __init__(self, emitter, arg):
        self.emitter, self.arg = emitter, arg

    def as_constant(self) -> Any:
        """The array itself if it is known and depends on no argument, else this value."""
        return self

    def takes(self, other: Any) -> bool:
        """Whether ``other`` may be combined with this value in an expression."""
        return isinstance(other, Value | np.ndarray | np.generic) or type(other) in _NUMBERS

    @property
    def type(self) -> ArrayType | None:
        """The type, None if unknown."""
        return self.arg.type

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""
        return self.type.dtype

    @property
    def shape(self) -> tuple:
        """The shape."""
        return self.type.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.type.shape)

    @property
    def size(self) -> Size | int:
        """The number of elements."""
        return self.type.size

    @property
    def T(self) -> "Value":
        """The transpose."""
        return PRIMITIVES["transpose"](self)

    @property
    def real(self) -> "Value":
        """The real part; the value itself if it is real."""
        return PRIMITIVES["real"](self) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> "Value":
        """The imaginary part."""
        return PRIMITIVES["imag"](self)

    @property
    def at(self) -> IndexedUpdate:
        """Functional updates: ``x.at[item].set(v)``, ``x.at[item].add(v)``."""
        return IndexedUpdate(self)

    # NumPy's functions in the rules of users' operations
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method != "__call__" or kwargs:
            return LATE_BOUND["call_ufunc_on_values"](ufunc, method, inputs, kwargs)
        return self.numpy_call(ufunc, inputs, kwargs)

    def __array_function__(self, func, types, args, kwargs):
        return self.numpy_call(func, args, kwargs)

    def numpy_call(self, func: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
        """The result of NumPy's function ``func``, with this value among the arguments."""
        return LATE_BOUND["call_on_values"](func, args, kwargs)

    def __len__(self):
        if not self.shape:
            raise DTypeError(f"len() of unsized object, {self.type}\n  pass an array")
        return self.shape[0]

    def __getitem__(self, item):
        return PRIMITIVES["index"](self, item)

    def __iter__(self):
        if self.type is None:
            raise ShapeError(
                f"{self!r} has no known shape: it cannot be iterated over or unpacked\n"
                "  trace with concrete arrays, or give its type"
            )
        # without it Python would index forever: a traced index never raises IndexError
        return (self[i] for i in range(len(self)))

    def __repr__(self):
        return f"Value({self.arg!r})"

    __add__, __radd__ = binary_operator("add"), reflected_operator("add")
    __sub__, __rsub__ = binary_operator("sub"), reflected_operator("sub")
    __mul__, __rmul__ = binary_operator("mul"), reflected_operator("mul")
    __truediv__, __rtruediv__ = binary_operator("div"), reflected_operator("div")
    __floordiv__, __rfloordiv__ = (
        binary_operator("floor_divide"),
        reflected_operator("floor_divide"),
    )
    __mod__, __rmod__ = binary_operator("remainder"), reflected_operator("remainder")
    __pow__, __rpow__ = binary_operator("power"), reflected_operator("power")
    __matmul__, __rmatmul__ = binary_operator("matmul"), reflected_operator("matmul")
    __and__, __rand__ = binary_operator("bitwise_and"), reflected_operator("bitwise_and")
    __or__, __ror__ = binary_operator("bitwise_or"), reflected_operator("bitwise_or")
    __xor__, __rxor__ = binary_operator("bitwise_xor"), reflected_operator("bitwise_xor")
    __lshift__, __rlshift__ = binary_operator("left_shift"), reflected_operator("left_shift")
    __rshift__, __rrshift__ = binary_operator("right_shift"), reflected_operator("right_shift")
    __lt__, __le__ = binary_operator("less"), binary_operator("less_equal")
    __gt__, __ge__ = binary_operator("greater"), binary_operator("greater_equal")
    __eq__, __ne__ = binary_operator("equal"), binary_operator("not_equal")
    __neg__, __pos__, __abs__ = (
        unary_operator("neg"),
        unary_operator("positive"),
        unary_operator("abs"),
    )
    __invert__ = unary_operator("invert")

    sum, prod, mean = numpy_method("sum"), numpy_method("prod"), numpy_method("mean")
    max, min, argmax, argmin = (
        numpy_method("max"),
        numpy_method("min"),
        numpy_method("argmax"),
        numpy_method("argmin"),
    )
    any, all, cumsum = numpy_method("any"), numpy_method("all"), numpy_method("cumsum")
    astype, clip, squeeze, dot = (
        numpy_method("cast"),
        numpy_method("clip"),
        numpy_method("squeeze"),
        numpy_method("dot"),
    )
    conj = conjugate = numpy_method("conj")
    reshape, transpose = numpy_shape_method("reshape"), numpy_shape_method("transpose")

    def ravel(self) -> "Value":
        """The elements as a 1-d array."""
        return self.reshape(-1)

    def flatten(self) -> "Value":
        """A copy of the elements as a 1-d array."""
        return PRIMITIVES["copy"](self.reshape(-1))

    def copy(self) -> "Value":
        """A copy."""
        return PRIMITIVES["copy"](self)
