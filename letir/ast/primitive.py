"""The ``Primitive`` record, which describes an operation completely, and the table of all records.

``letir/ops`` fills the table. The builder reads ``aval``, the evaluator ``impl``, the derivative
transforms ``vjp`` and ``jvp``. A missing rule is ``never(reason)``, or for now ``todo(reason)``.
"""

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, field

from letir.ast import LATE_BOUND, LoadingTable, record_fields
from letir.ast.attrs import NO_ATTRS, Attrs, Required, keyword_defaults
from letir.ast.record_fields import NO_BATCH, NO_OPERATOR, Absent, PythonOperator, SeveralBinds
from letir.ast.symbolic_sizes import has_sizes
from letir.errors import DTypeError, LetirError, MissingRule

if TYPE_CHECKING:
    from letir.ast.record_fields import BodyLayout


class _Documentation:
    """``__doc__`` of the class ``Primitive``, and of each record: what ``help`` shows of it."""

    def __init__(self, of_class: str | None):
        self.of_class = of_class

    def __get__(self, record: "Primitive | None", owner: type) -> str | None:
        return self.of_class if record is None else LATE_BOUND["record_documentation"](record)


# eq=False: binds of one operation share one record, and are compared by `is`.
@define(eq=False, repr=False)
class Primitive:
    """One operation, with everything that letir knows about it.

    Rules are written in operations on ``Value``s, so that they can be differentiated
    and batched again. The five required fields come first, then the optional ones, in groups.

    >>> from letir.extend import PRIMITIVES
    >>> tanh = PRIMITIVES["tanh"]
    >>> tanh.name, tanh.elementwise, tanh.effect, [f.__name__ for f in tanh.numpy]
    ('tanh', True, False, ['tanh'])
    """

    __doc__ = _Documentation(__doc__)  # type: ignore
    __signature__ = record_fields.RecordSignature()

    name: str  # words and dots; an operation of a user is called ``package.name``
    # impl(xp, *arrays, **attrs) computes the results, with xp NumPy or CuPy. Its keyword-only
    # parameters are the attributes. With `holds_lambdas` it also gets `call`, the evaluator in use.
    impl: Callable
    # aval(*types, **attrs) gives the type of the result; a tuple of types with `results`
    aval: Callable
    # vjp(ct, out, *args, **attrs) gives one cotangent for each argument, None for zero
    vjp: Callable | Absent
    # jvp(tangents, out, *args, **attrs) gives the tangent of the result
    jvp: Callable | Absent

    # ---- numerics ----
    # results(**attrs) is the number of results; None: one result, which is not in a tuple
    results: Callable | None = None
    # the function whose keyword-only parameters are the attributes; None: `impl`
    attributes: Callable | None = None
    # computes the same as `impl`, in place in the first operand; used if that has no other use
    update: Callable | None = None
    # update: with two operands, the second may be a view of the first
    updates_from_view: bool = False
    reusable: bool = False  # the result may be written into the buffer of a dead operand
    version: int = 1  # of the attributes in files; increased when their meaning changes

    # ---- derivatives ----
    # decompose(*args, **attrs) computes the operation by more basic ones
    decompose: Callable | None = None
    inlined: bool = False  # AD replaces it by its decomposition, and differentiates that
    # with_residuals(bind, needed, defined, differentiate) is the bind with the residuals that its
    # vjp reads as further results; `needed`: which operands require grad, `defined`: which results
    # have a cotangent
    with_residuals: Callable | None = None
    # with_tangent_residuals(bind, mask, linear) is the same for `linearize`; `mask`: which operands
    # have a tangent
    with_tangent_residuals: Callable | None = None
    # fused_jvp(tangents, *args, transform, **attrs) is (results, tangents), computed by one
    # operation that replaces this one, such as a loop that carries values and tangents
    fused_jvp: Callable | None = None
    rule_reads_numbers: bool = False  # the rules are simpler if an operand is a known number

    # ---- batching ----
    batch: Callable | Absent = NO_BATCH  # see letir.transforms.batching

    # ---- bodies ----
    holds_lambdas: bool = False  # attributes are programs, or `impl` runs some
    bodies: "BodyLayout | None" = None  # None: passes leave the bodies alone
    # consume(xp, operands, *, call, **attrs) computes the same as `impl`, and empties the list
    # `operands`, so that each operand is freed at its last use inside the bodies
    consume: Callable | None = None

    # ---- facts ----
    # the special meaning that passes give to the operation: "constant", "guard", "write_back",
    # "barrier", "fused", "subgraph", "index" (x[item]), "index_set" (its write), "roll", "copy",
    # "negation"; in gradient programs "grad_of", "when_defined", "autograd_add", "instantiate";
    # "read_only_copied": NumPy copies read-only operands; "fold_in": a random key of another one;
    # "sized", see `sizes_in`; "error_region": in an error state; "draw", "library", "solver"
    role: str | None = None
    # stops programs whose values are not as recorded; another plan may complete the call
    guards: bool | Callable = False  # or guards(**attrs)
    undefinable: int | Callable = 0  # how many leading operands may be ``Undef``, also of **attrs
    elementwise: bool = False  # an element of the result depends on the operands' at its place only
    effect: bool = False  # dead-code elimination keeps it, and no pass reorders it
    random: bool = False  # draws random numbers, so that equal binds are never merged
    # the operand of a random operation that is the key it consumes; None: it consumes no key,
    # because it repeats the draw of another bind on purpose
    key_operand: int | None = 0
    reads_sizes_only: bool = False  # the result depends on the shapes of operands, not on elements
    commutative: bool = False  # op(x, y) and op(y, x) are equal bit by bit
    exact: bool = False  # correctly rounded: the bits do not depend on the memory layout
    odd_in: tuple[int, ...] = ()  # operands whose negation negates the result
    # the operands in which it can be linear; None: those that its vjp does not read
    linear_in: tuple[int, ...] | None = None
    added: str | None = None  # the attribute whose number is added to the result
    # is_zero(*types, **attrs): whether the result is zero for all values of the operands
    is_zero: Callable | None = None
    result_below: int | None = None  # if this operand is positive, the result is less than it
    # never raises and never warns, for all values, if all operands are arrays of static shapes:
    # `never_fails`: with dtypes of these kinds; `never_fails_alone`: with at most one operand
    never_fails: str = ""
    never_fails_alone: bool = False
    # warns of floating-point errors only, which np.errstate controls; implied for ufuncs
    only_float_warnings: bool = False
    # raises(*types, **attrs): whether it raises for some values of its operands; True: it does.
    # Operations on Python numbers alone do so anyway
    raises: Callable | bool = False
    casts_operands: bool = False  # to the dtype of the result; complex to real warns
    needs_elements: bool = False  # raises for empty arrays
    # operand_dtypes(dtype, count): the dtypes to which operands are cast for a result of this
    # dtype; None: the dtypes of the ufunc's loop
    operand_dtypes: Callable | None = None
    ends_fusion: bool = False  # may be the last operation of a group of fused elementwise ones
    no_float_errors: bool = False  # no floating-point errors, or none for np.errstate to control

    # ---- kernels ----
    # the name of the scalar form of an elementwise operation, see letir.kernels.scalar_forms, or of
    # the array form of another, see array_forms; scalar(**attrs) gives the name for an operation
    # that has several. NumPy computes operations with None or a name without a form
    scalar: str | Callable | None = None
    python_errors: bool = False  # a Python exception where a ufunc has a floating-point error
    by_element: str = ""  # the dtypes of which NumPy or SciPy compute one element at a time
    # if a bind has at most so many operands, its results only rearrange elements of operands, in an
    # order that follows from types and attributes
    moves_elements: int = 0
    repeats: bool = False  # repeats a number, or its operand, up to its attribute ``shape``
    # the form of a reduction, see letir.kernels.reduction_forms; "parts": from its decomposition
    reduction: str | None = None
    is_extremum: bool = False  # a reduction whose results are elements of the operand
    # the products of elements that it sums: "matrix": of rows and columns of two operands; "outer":
    # of each element with each, not summed; "subscripts": as its attribute says; "windows": of
    # windows with a weight; "transposed windows", "weights of windows": those of its derivatives
    product: str | None = None
    # adds further operands at indices: "operand": to a copy of the first one; "zeros": to zeros
    adds_parts: str | None = None

    # ---- memory and cost ----
    # aliasing of results: "new": they have separate memory; "view": they share the memory of
    # the first operand if `views` returns True; "if_same_shape": they may share it only if they
    # have the shape of the first operand; "may_alias": unknown, unless `views` says it. The
    # default is "may_alias" for users' operations and those that hold bodies, else "new".
    memory: str | None = None
    # views(*types, **attrs): whether results share the memory of the first operand
    views: Callable | None = None
    may_return_operand: bool = False  # the view may be the operand itself, the same object
    # what an operand must be for the result to be a view, not a copy: "strided": strides can
    # describe its elements in the new shape; "contiguous"; None: any operand will do
    view_needs: str | None = None
    # write_through(parent, new, *others, **attrs) is the first operand after `new` was written into
    # the result, its view. "by_place": the result only selects elements. "read_only": NumPy makes
    # the view read-only. "own": the result is a new, writable array, never a scalar.
    write_through: Callable | str | None = None
    # part(type, place, **attrs) is (operation, attributes) of the result number `place` alone
    part: Callable | None = None
    # the memory order of results with several axes: "C": always C order; "first": C order if the
    # first operand, of the same size, has it; "all": C order if all operands have it, the default
    # of elementwise operations; None: unknown
    order: str | None = None
    # the results are new compact memory, which they share with no other value: "scalar": a 0-d
    # result is a NumPy scalar, the default of ufuncs; "array": it may be an array; None: unknown
    compact: str | None = None
    gives_scalars: bool = False  # a 0-d result is a NumPy scalar; implied by `compact`
    # the cost of recomputing it: "free"; "cheap": one pass, few instructions an element;
    # "moderate": a few passes, or elements are moved; "expensive"; "bodies": the cost of the most
    # expensive bind in its bodies. The default is "moderate" for elementwise operations.
    cost: str | None = None
    # work(result, *types, **attrs) is the number of arithmetic operations, from the types of the
    # result and of the operands; None: elementwise operations and reductions, whose number follows
    # from their forms, and operations whose number is unknown
    work: Callable | None = None

    # ---- numpy ----
    # the NumPy callables that record the operation; a dict gives each its own `prepare`
    numpy: tuple[Callable, ...] | dict[Callable, Callable | None] = ()
    # prepare(*args, **kwargs) turns the arguments of NumPy's function into (operands, attrs)
    prepare: Callable | None = None
    # returned(results, **attrs) is the list or named tuple that NumPy's function returns for
    # several results; None: a plain tuple
    returned: Callable | None = None
    # of a ufunc: {its method, such as "reduce": the operation that records it}; others are recorded
    # by ``ufunc_reduce``, ``ufunc_accumulate`` and ``ufunc_at``
    methods: Mapping[str, str] = field(factory=dict)
    in_domain: float = 0.5  # a number in the domain of each operand, without a warning
    out_takes_part: bool = False  # the dtype of `out=` has a say in the dtype of the computation

    takes_shape: bool = False  # one argument is a shape
    # attributes that may be symbolic sizes: see the operation ``sized``
    sizes_in: tuple[str, ...] = ()
    spreads: bool = False  # the last argument may be unpacked: x.reshape(2, 3)
    for_scripts: bool = True  # scripts may call it; False for operations that only letir emits

    # ---- Python's operators, source and export ----
    python: PythonOperator = NO_OPERATOR  # what its operator does with Python numbers
    # the NumPy source of a bind: a template such as "{0} * {axis}", or a function
    # source(write, *operands, **attrs), see letir.source.bind_writer. The default is `symbol`, else
    # a call of the first function of `numpy` with the attributes as keywords.
    source: Callable | str | None = None
    symbol: str | None = None  # Python's operator, such as "+"; the default is that of `python`
    # the name of an ONNX node without attributes, or a function onnx(graph, bind) that appends
    # nodes and gives the names of the results; None: letir.onnx.exporting has a rule, or the
    # decomposition is exported
    onnx: str | Callable | Absent | None = None

    # ---- derived from the others ----
    is_user_defined: bool = field(init=False)  # a user's operation: passes rely on its fields only
    # {attribute: default}, in the order of impl's signature, in which texts print them
    attrs: dict[str, Any] = field(init=False)
    # of a ufunc; a further operand would be the array that NumPy writes into
    max_operands: int | None = field(init=False, default=None)
    flags: tuple[str, ...] = field(init=False)  # the attributes that are True or False
    default_attrs: Attrs | None = field(init=False)  # None if an attribute has no default
    is_differentiable: bool = field(init=False)  # has a vjp, or will have one in a later version

    def __attrs_post_init__(self):
        self.is_user_defined = "." in self.name
        self.raises = self.raises or self.is_user_defined
        self.symbol = self.symbol or self.python.symbol
        self.gives_scalars = self.gives_scalars or self.compact == "scalar"
        function: Any = self.attributes or self.impl
        # most operations have no attributes, and a first jit(grad(f)) makes a hundred records
        self.set_attrs(keyword_defaults(function) if function.__code__.co_kwonlyargcount else {})
        self.is_differentiable = type(self.vjp) is not Absent or not self.vjp.final
        if self.memory is None:
            is_open = self.is_user_defined or (self.holds_lambdas and self.decompose is None)
            self.memory = "may_alias" if is_open else "new"
        if self.elementwise and self.memory == "new" and self.order is None:
            self.order = "all"
        if type(self.numpy) is tuple:
            self.numpy = dict.fromkeys(self.numpy, self.prepare)
        if self.prepare is None:
            self.max_operands = getattr(next(iter(self.numpy), None), "nin", None)

    def set_attrs(self, defaults: dict[str, Any]) -> None:
        """Set the attributes and their defaults; ``Required`` stands for no default."""
        self.attrs, self.flags, self.default_attrs = defaults, (), NO_ATTRS
        if not defaults:
            return
        # not `optimize` of einsum, which is also the name of a method
        self.flags = tuple([k for k, v in defaults.items() if type(v) is bool and k != "optimize"])
        is_complete = id(Required) not in map(id, defaults.values())  # not ==: may be arrays
        self.default_attrs = Attrs(defaults) if is_complete else None

    def __call__(self, *args, **kwargs):
        """Record the operation if an operand is traced or a Value, compute it if all are arrays.

        Rules call operations this way, and users call those that NumPy lacks this way.
        """
        operands, attrs = args, kwargs
        try:
            if self.prepare is not None:
                try:
                    operands, attrs = self.prepare(*args, **kwargs)
                except SeveralBinds as call:
                    return call.results()
            elif kwargs and not self.attrs.keys() >= kwargs.keys():
                operands, attrs = LATE_BOUND["operands_by_name"](self, args, kwargs)
            if self.sizes_in and has_sizes(attrs, self.sizes_in):
                return LATE_BOUND["sized_call"](self, operands, self.complete(attrs))
            # the first operand's emitter handles operands of other emitters, or refuses them
            for operand in operands:
                emitter = getattr(operand, "emitter", None)
                if emitter is not None:
                    # ``prepare`` may give complete attributes, which it has made before
                    attrs = attrs if type(attrs) is Attrs else self.complete(attrs)
                    return emitter.apply(self, operands, attrs)
            if self.max_operands is not None and len(operands) > self.max_operands:
                raise DTypeError(
                    f"{self.name}: {self.max_operands} operands are expected, found "
                    f"{len(operands)}\n  pass arrays as operands, the rest by keyword"
                )
            return LATE_BOUND["compute"](self, operands, self.complete(attrs))
        except BaseException as error:
            short = LATE_BOUND["shorten_traceback"](error, self, args, kwargs)
            if short is error:
                del short, args, kwargs, operands, attrs
                raise
        try:
            raise short
        finally:
            del short, args, kwargs, operands, attrs

    def complete(self, attrs: dict[str, Any]) -> Attrs:
        """``attrs`` with the defaults filled in, in the record's order."""
        # most operations have no attributes: one shared object, which others compare by `is`
        if not self.attrs and not attrs:
            return NO_ATTRS
        # all calls with the default values share one object, so that its token is computed once
        flags = map(operator.is_, map(self.attrs.get, attrs), attrs.values())
        if self.default_attrs is not None and self.attrs.keys() >= attrs.keys() and all(flags):
            return self.default_attrs
        full = {name: attrs.get(name, default) for name, default in self.attrs.items()}
        for name in self.flags:
            if type(full[name]) is not bool:
                LATE_BOUND["refuse_flag"](self.name, name, full[name])
        if id(Required) in map(id, full.values()) or not full.keys() >= attrs.keys():
            raise LATE_BOUND["attributes_error"](self, attrs, full)
        return Attrs(full)

    def rule(self, kind: str) -> Callable:
        """The rule ``vjp``, ``jvp``, ``batch`` or ``onnx``. Raises MissingRule with the reason."""
        rule = getattr(self, kind)
        if type(rule) is Absent:
            raise MissingRule(f"{self.name} has no {kind} rule: {rule.reason}")
        return rule

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return primitive_named, (self.name,)  # by name, because lambdas cannot be pickled


def _load_record(name: str) -> None:
    LATE_BOUND["load_operation"](name)


PRIMITIVES: dict[str, Primitive] = LoadingTable(_load_record)


def register(record: Primitive) -> Primitive:
    """Enter ``record`` into the table of operations.

    Raises LetirError if its name is taken, or is not made of words and dots.
    """
    if not all(map(str.isidentifier, record.name.split("."))):
        raise LetirError(
            f"{record.name!r} cannot name an operation\n  use words and dots, as in 'mine.add'"
        )
    if record.name in PRIMITIVES:
        raise LetirError(
            f"an operation named {record.name!r} exists already\n"
            "  name your own package.name, as in 'mine.add'"
        )
    PRIMITIVES[record.name] = record
    return record


def results_tuple(op: Primitive, out: Any) -> tuple:
    """``out``, the return value of ``op``, as a tuple: (out,) if ``op`` has a single result."""
    return (out,) if op.results is None else tuple(out)


def unwrap_results(op: Primitive, results: tuple) -> Any:
    """The return value of ``op`` for the tuple of its results; a single result is unwrapped."""
    return results[0] if op.results is None else results


def result_count(op: Primitive, attrs: Mapping[str, Any]) -> int:
    """The number of results of ``op`` with these attributes."""
    return 1 if op.results is None else op.results(**attrs)


def record_of(name: str) -> Primitive | None:
    """The record with this name, or None. Unlike ``PRIMITIVES.get`` it loads the file."""
    try:
        return PRIMITIVES[name]
    except KeyError:
        return None


def primitive_named(name: str) -> Primitive:
    """The record with this name. Raises LetirError that names the package to import."""
    try:
        return PRIMITIVES[name]
    except KeyError:
        package = name.rpartition(".")[0]
        remedy = f"import {package} first" if package else "a newer letir may have it"
        raise LetirError(f"there is no operation {name!r}: {remedy}") from None
