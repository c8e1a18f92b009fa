"""The ``Primitive`` record: all that letir knows of an operation, and the one table of records.

``ops/`` fills the table; ``letir.ast.builder`` reads ``aval``, the evaluator ``impl``, the
derivatives ``vjp`` and ``jvp``. A rule that cannot exist is ``never(reason)``, one that a later
version brings ``todo(reason)``.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field, frozen

from letir.ast.attrs import NO_ATTRS, Attrs
from letir.ast.body_layout import BodyLayout
from letir.errors import LetirError, MissingRule


@frozen
class Absent:
    """A missing rule with the reason. ``final``: the rule cannot exist.

    >>> from letir.extend import PRIMITIVES
    >>> PRIMITIVES["argmax"].vjp.reason
    'the result is not floating, so there is nothing to differentiate'
    """

    reason: str
    final: bool


def never(reason: str) -> Absent:
    """A rule that cannot exist, because of ``reason``.

    >>> never("integer result")
    Absent(reason='integer result', final=True)
    """
    return Absent(reason, final=True)


def todo(reason: str) -> Absent:
    """A rule that a later version brings.

    >>> todo("complex operands")
    Absent(reason='complex operands', final=False)
    """
    return Absent(reason, final=False)


NO_BATCH = todo("batching rules come with vmap")
_NO_ONNX = todo("export comes with the onnx package")


def is_final(rule) -> bool:
    """Whether a rule is absent for good."""
    return type(rule) is Absent and rule.final


class Required:
    """A marker for attributes without a default."""


def _keywords(function) -> dict[str, Any]:
    """{name: default} of a function's keyword-only parameters: the attributes of an operation."""
    # not inspect.signature: 9 us a function, and all records are made at import
    code = function.__code__
    names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    defaults = function.__kwdefaults__ or {}
    # `call` is the evaluator in use, not an attribute
    return {name: defaults.get(name, Required) for name in names if name != "call"}


# eq=False: binds of one operation share one record, and are compared by `is`.
@define(eq=False, repr=False)
class Primitive:
    """One operation: everything that letir knows about it.

    Rules are written in letir's own operations on ``Value``s, so that they can be differentiated
    and batched again. The five required fields come first, then the optional ones, in groups.

    >>> from letir.extend import PRIMITIVES
    >>> tanh = PRIMITIVES["tanh"]
    >>> tanh.name, tanh.elementwise, tanh.effect, [f.__name__ for f in tanh.numpy]
    ('tanh', True, False, ['tanh'])
    """

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
    results: Callable | None = None  # results(**attrs) counts them; None: one, which is no tuple
    # the function whose keyword-only parameters are the attributes, where that is not `impl`
    attributes: Callable | None = None
    # computes as `impl`, but in the array of the first operand, which nobody else has
    update: Callable | None = None
    reusable: bool = False  # the result may be written into the buffer of a dead operand
    version: int = 1  # of the meaning of the attributes, in files

    # ---- derivatives ----
    # decompose(*args, **attrs) says of which operations a composite is made
    decompose: Callable | None = None
    inlined: bool = False  # derivatives are those of the decomposition, put in its place beforehand
    # saving(bind, needed, defined, differentiate) is the bind with further results: the residuals
    # that its vjp reads, given which operands require grad and which results have a cotangent
    saving: Callable | None = None
    saving_tangents: Callable | None = None  # (bind, mask, linear): the same for `linearize`
    # joint(tangents, *args, transform, **attrs) gives (results, tangents) by one operation that
    # stands in the place of this one
    joint: Callable | None = None
    rule_reads_numbers: bool = False  # the rules are simpler for known numbers among the operands

    # ---- batching ----
    batch: Callable | Absent = NO_BATCH  # see letir.transforms.batching

    # ---- bodies ----
    holds_lambdas: bool = False  # attributes are programs, or `impl` runs some
    bodies: BodyLayout | None = None  # None: passes know no more than that there are bodies
    # consume(xp, operands, *, call, **attrs) computes as `impl` of an operation that holds bodies,
    # and empties the list, so that each operand is freed at its last use inside of them
    consume: Callable | None = None

    # ---- facts ----
    # what part the operation plays in the language, for passes that treat that part in a special
    # way: "constant", "guard", "write_back", "barrier", "fused", "subgraph", or a step of gradient
    # programs, "grad_of", "when_defined", "autograd_add", "instantiate"; or it is "index", x[item],
    # or "fold_in", which makes a random key of a key and a number
    role: str | None = None
    elementwise: bool = False  # each element of the result comes of those in its place
    effect: bool = False  # is kept alive, and in order
    random: bool = False  # draws numbers: two such binds are never merged
    # of what draws: which operand is the random key that it uses up; None: it draws the numbers of
    # another bind again, on purpose
    key_operand: int | None = 0
    reads_sizes_only: bool = False  # the result depends on the shapes of operands, not on elements
    commutative: bool = False  # op(x, y) and op(y, x) are the same bits
    exact: bool = False  # rounds correctly: the bits do not depend on how operands lie in memory
    odd_in: tuple[int, ...] = ()  # operands whose negation negates the result
    # the operands in which it can be linear; None: those that its vjp does not read
    linear_in: tuple[int, ...] | None = None
    added: str | None = None  # the attribute that is a number added to what depends on operands
    # is_zero(*types, **attrs): whether the result is zero whatever the values of operands are
    is_zero: Callable | None = None
    result_below: int | None = None  # the operand that the result is less than, if that is positive
    # never raises and never warns, whatever the values are, if all operands are arrays of known
    # shapes: with dtypes of these kinds; or of any kind, with at most one operand
    never_fails: str = ""
    never_fails_alone: bool = False
    # warns of nothing but floating-point errors, which np.errstate governs; of all ufuncs this is
    # known
    only_float_warnings: bool = False
    casts_operands: bool = False  # to the dtype of the result: complex to real is a warning
    needs_elements: bool = False  # refuses arrays without elements
    # operand_dtypes(dtype, count): the dtypes in which operands are taken where that is not said by
    # a ufunc's loop, for a result of this dtype
    operand_dtypes: Callable | None = None
    ends_fusion: bool = False  # may stand last in a group of fused elementwise operations

    no_float_errors: bool = False  # or none that np.errstate should govern

    # ---- memory and cost ----
    # where results lie: "new": in memory of their own; "view": in that of the first operand, where
    # `views` says so; "if_same_shape": a result of another shape than the first operand is new;
    # "may_alias": nothing is known. By default "may_alias" for users' operations and those that
    # hold bodies, "new" for all others.
    memory: str | None = None
    # views(*types, **attrs): whether results lie in the memory of the first operand
    views: Callable | None = None
    # of which operands the result is a view, not a copy: of those whose elements strides can
    # describe in the new shape ("strided"), or that lie in one piece ("contiguous"); None: of all
    view_needs: str | None = None
    # write_through(parent, new, *others, **attrs) is the first operand after `new` was written into
    # the result, its view. "by_place": the result only picks elements. "read_only": NumPy lets
    # nobody write there. "own": the result is a new array that can be written to, never a scalar.
    write_through: Callable | str | None = None
    # part(type, place, **attrs) is (operation, attributes) of the result at `place` alone
    part: Callable | None = None
    # the memory order of results of several axes: "C" whatever operands are; C if the "first"
    # operand, of as many elements, lies in C order; or if "all" operands do, as of all elementwise
    # operations; None: not known
    order: str | None = None
    # what computing it again costs: "free"; "cheap": one pass of few instructions an element;
    # "moderate": a few passes, or elements in other places; "dear"; "bodies": as its dearest bind.
    # By default "moderate" for elementwise operations.
    cost: str | None = None

    # ---- numpy ----
    # the NumPy callables that record the operation, each with its own `prepare` where they differ
    numpy: tuple[Callable, ...] | dict[Callable, Callable | None] = ()
    # prepare(*args, **kwargs) takes the call of NumPy's function and gives (operands, attrs)
    prepare: Callable | None = None
    # returned(results, **attrs) is what NumPy's function returns for several results, where that is
    # not a plain tuple: a list, or a named tuple
    returned: Callable | None = None
    out_takes_part: bool = False  # the dtype of `out=` takes part in the one that is computed in

    takes_shape: bool = False  # one argument is a shape
    spreads: bool = False  # the last argument may come in parts: x.reshape(2, 3)
    for_scripts: bool = True  # not: steps of gradient programs, what scripts write in another way

    # ---- source and export ----
    # how a bind is written in NumPy: a template such as "{0} * {axis}", or a function
    # source(write, *operands, **attrs), see letir.source.steps. By default its `symbol`, or the
    # function of `numpy` with the attributes as keywords.
    source: Callable | str | None = None
    symbol: str | None = None  # of the operator, such as "+"
    onnx: str | Callable | Absent = _NO_ONNX

    # ---- made from the others ----
    is_users: bool = field(init=False)  # a user's operation: what no field says is not known
    # the attributes and their defaults, in the order of texts: of impl's signature
    attrs: dict[str, Any] = field(init=False)
    default_attrs: Attrs | None = field(init=False)  # None if one has no default
    is_differentiable: bool = field(init=False)  # in reverse mode, now or in a later version

    def __attrs_post_init__(self):
        self.is_users = "." in self.name
        self.set_attrs(_keywords(self.attributes or self.impl))
        self.is_differentiable = not is_final(self.vjp)
        if self.memory is None:
            is_open = self.is_users or (self.holds_lambdas and self.decompose is None)
            self.memory = "may_alias" if is_open else "new"
        if self.elementwise and self.memory == "new" and self.order is None:
            self.order = "all"
        if type(self.numpy) is tuple:
            self.numpy = dict.fromkeys(self.numpy, self.prepare)

    def set_attrs(self, defaults: dict[str, Any]) -> None:
        """Let these be the attributes and their defaults, ``Required`` where there is none."""
        self.attrs = defaults
        is_complete = id(Required) not in map(id, defaults.values())  # not ==: of arrays too
        self.default_attrs = Attrs(defaults) if is_complete else None

    def __call__(self, *args, **kwargs):
        """Record the operation if an operand is traced or a Value, compute it if all are arrays.

        Rules are written in this form, and users call operations that NumPy lacks in this form.
        """
        if self.prepare is not None:
            args, kwargs = self.prepare(*args, **kwargs)
        # the first emitter: it handles operands that belong to another one, or refuses them
        for arg in args:
            emitter = getattr(arg, "emitter", None)
            if emitter is not None:
                return emitter.apply(self, args, self.complete(kwargs))
        return LATE_BOUND["compute"](self, args, self.complete(kwargs))

    def complete(self, attrs: dict[str, Any]) -> Attrs:
        """``attrs`` with the defaults filled in, in the record's order."""
        # most operations: the shared object, tested by `is` elsewhere
        if not self.attrs and not attrs:
            return NO_ATTRS
        # one object, with one token, for the calls that give nothing but the defaults
        given = map(operator.is_, map(self.attrs.get, attrs), attrs.values())
        if self.default_attrs is not None and self.attrs.keys() >= attrs.keys() and all(given):
            return self.default_attrs
        full = {name: attrs.get(name, default) for name, default in self.attrs.items()}
        required = [name for name, value in full.items() if value is Required]
        if required or not full.keys() >= attrs.keys():  # >=: an unknown name is refused too
            expected = ", ".join(self.attrs) or "none"
            raise LetirError(f"{self.name}: its attributes are ({expected}), found {dict(attrs)!r}")
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
        return primitive_named, (self.name,)  # by name: rules are lambdas, which do not pickle


class _Table(dict):
    """A dict that others fill: for a name that it lacks it calls ``load(name)`` and looks again."""

    def __init__(self, load: Callable[[str], None]):
        super().__init__()
        self._load = load

    def __missing__(self, name: str):
        self._load(name)
        if name not in self:
            raise KeyError(name)
        return self[name]


def _load_record(name: str) -> None:
    LATE_BOUND["load_operation"](name)


def _load_late_bound(name: str) -> None:
    if name != "load":  # letir/__init__.py enters this one: it knows where the others are
        LATE_BOUND["load"](name)


PRIMITIVES: dict[str, Primitive] = _Table(_load_record)
LATE_BOUND: dict[str, Callable] = _Table(_load_late_bound)  # what modules to the right define


def register(record: Primitive) -> Primitive:
    """Enter ``record`` in the table of primitives.

    Raises LetirError if its name is taken, or is not made of words and dots.
    """
    if not all(word.isidentifier() for word in record.name.split(".")):
        raise LetirError(f"{record.name!r} cannot name an operation: use words and dots")
    if record.name in PRIMITIVES:
        raise LetirError(
            f"an operation named {record.name!r} exists already; users' are package.name"
        )
    PRIMITIVES[record.name] = record
    return record


def results_tuple(op: Primitive, out) -> tuple:
    """What a call of ``op`` returned, as a tuple of its results also if there is one."""
    return (out,) if op.results is None else tuple(out)


def unwrap_results(op: Primitive, results: tuple):
    """The results of ``op`` as a call of it returns them: the only one alone, several as they
    are.
    """
    return results[0] if op.results is None else results


def result_count(op: Primitive, attrs: Mapping[str, Any]) -> int:
    """How many results ``op`` has with these attributes."""
    return 1 if op.results is None else op.results(**attrs)


def record_of(name: str) -> Primitive | None:
    """The record with this name, None if there is none: unlike ``get`` it loads the file."""
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
        remedy = f"import {package} first" if package else "its file may come from a newer letir"
        raise LetirError(f"there is no operation {name!r} here: {remedy}") from None
