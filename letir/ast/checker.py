"""``check``: the invariants that every program satisfies and every pass preserves.

Linear in the number of binds; nested bodies are checked too. Unknown types are accepted, and so are
recorded types that are more specific than the type rule can infer.
"""

from letir.ast import LATE_BOUND, entry_point
from letir.ast.bodies import BODY_ATTRIBUTES, all_bodies, bodies_in
from letir.ast.builder import result_types
from letir.ast.primitive import PRIMITIVES, Primitive, result_count
from letir.ast.process_state import paused_gc
from letir.ast.source import error_in_let, error_of_rule, source_line
from letir.ast.symbolic_sizes import given_sizes, resize_attrs
from letir.ast.terms import Bind, Const, Lambda, Local, Ret
from letir.ast.text.printer import line_of
from letir.ast.tree_nodes.stored_results import SameAs, Stores
from letir.ast.types import PYTHON_NUMBERS, ArrayType, UndefType
from letir.errors import DTypeError, LetirError, ScopeError, ShapeError


@entry_point
def check(fn: Lambda) -> Lambda:
    """Return ``fn`` if it is well formed: closed, each local bound once and before its uses, types
    as inferred.

    Raises ScopeError that names the local, or ShapeError or DTypeError with the let line and the
    user's line; DTypeError for a part of a program that is of the wrong class.

    >>> from letir import parse
    >>> f = parse("lambda %0: float64[2] { %1: float64[3] = exp(%0); return %1 }")
    >>> try:
    ...     check(f)
    ... except Exception as error:
    ...     print(type(error).__name__)
    ShapeError
    """
    try:
        for body in all_bodies(fn):  # once each: the binds of a gradient program share them
            _check_level(body)
    except LetirError as error:
        raise LATE_BOUND["error_in_text"](error, fn) from None
    except (RecursionError, MemoryError):
        raise
    except Exception as error:  # a part of a wrong class
        raise LATE_BOUND["malformed_error"](fn, error) from None
    return fn


def _check_level(fn: Lambda) -> None:
    """Check the binds of ``fn`` itself, not the bodies that they hold."""
    bound: set[Local] = set()
    for param in fn.params:
        if type(param) is not Local or not (param.type is None or type(param.type) is ArrayType):
            raise TypeError  # ``check`` describes the object
        _check_bind(param, bound, "a parameter")
    for bind in fn.binds:
        # a local must be bound; any other argument must be a constant
        for arg in bind.args:
            if arg not in bound if type(arg) is Local else not _is_const(arg):
                raise ScopeError(_unbound_message(fn, bind, arg))
        check_bind_types(fn, bind)
        for binder in bind.binders:
            _check_bind(binder, bound, f"the result of {bind.op.name}")
    for arg in fn.ret.args:
        if arg not in bound if type(arg) is Local else not _is_const(arg):
            raise ScopeError(
                f"the result {arg!r} of the program is not bound in it\n"
                "  a program is closed: return a parameter or the result of a bind"
            )
    _check_trees(fn)


def _check_trees(fn: Lambda) -> None:
    """Raise ShapeError unless the trees describe as many arrays as the program takes and returns,
    and the former positional arguments and keywords.
    """
    if fn.in_tree is not None:
        nesting: list = fn.in_tree.spec.children() if fn.in_tree.spec.type is tuple else []
        if [part.type for part in nesting] != [tuple, dict] or not all(
            type(name) is str for name in nesting[1].entries()
        ):
            raise ShapeError(
                f"the arguments are nested as {fn.in_tree}, which is not a call\n"
                "  write a tuple and a dict: in ((*, *), {'k': *}) for f(x, y, k=z)"
            )
        _check_count(fn.in_tree.arrays, len(fn.params), "in", "parameters")
    if fn.out_tree is not None:
        if fn.out_tree.statics:
            raise ShapeError(
                f"the results are nested as {fn.out_tree}: only arguments can be static\n"
                "  write a string among the results as 'text'"
            )
        _check_count(fn.out_tree.arrays, len(fn.ret.args), "out", "results")
    _check_stores(fn)


def _check_stores(fn: Lambda) -> None:
    """Raise ShapeError unless ``stores`` is the root of the results, and ``same_as`` is in it or in
    the arguments.
    """
    inside = list(fn.in_tree.spec.children()) if fn.in_tree is not None else []
    outside = [fn.out_tree.spec] if fn.out_tree is not None else []
    if fn.out_tree is not None and fn.out_tree.stores:
        outside = list(fn.out_tree.spec.children())
    todo = [(spec, True) for spec in inside] + [(spec, fn.out_tree.stores) for spec in outside]
    while todo:
        spec, may_refer = todo.pop()
        if spec.type is Stores or (spec.type is SameAs and not may_refer):
            raise ShapeError(
                "stores(...) describes all results of a program, and same_as(...) a part of "
                "them or of the arguments\n"
                "  write them after out: out stores(*, {'args[0].w': *})"
            )
        todo += [(child, may_refer) for child in spec.children()]


def _check_count(described: int, count: int, word: str, noun: str) -> None:
    """Raise ShapeError unless a tree describes as many arrays as there are."""
    if described != count:
        raise ShapeError(
            f"the tree after `{word}` has {described} arrays, the program {count} {noun}\n"
            f"  write one * for each of the {noun}"
        )


def _check_bind(local: Local, bound: set[Local], subject: str) -> None:
    if local in bound:
        raise ScopeError(
            f"{subject}, {local!r}, is bound twice: every local is bound once\n"
            "  bind the second result to a new Local"
        )
    bound.add(local)


def _is_const(arg) -> bool:
    return type(arg) is Const and (
        type(arg.value) in PYTHON_NUMBERS or arg.value is None or type(arg.value) is UndefType
    )


def _unbound_message(fn: Lambda, bind: Bind, arg) -> str:
    later = any(arg in other.binders for other in fn.binds)
    problem = (
        "is used before it is bound"
        if later
        else "is free: a program is closed, make it a parameter"
    )
    # not line_of: the printer has no number for an unbound local
    at = source_line(bind.source)
    return f"{arg!r} {problem}\n  in {bind.op.name}({', '.join(map(repr, bind.args))}){at}"


def check_bind_types(fn: Lambda, bind: Bind) -> None:
    """Raise LetirError unless the results of a bind have the types that its operands give."""
    op, attrs = bind.op, bind.attrs
    # a user's package.name may be redefined: programs keep the record they were made with
    if PRIMITIVES.get(op.name) is not op and not op.is_user_defined:
        raise ScopeError(
            f"{op.name} is not an operation of this letir\n"
            "  take the record from letir.extend.PRIMITIVES by its name"
        )
    # in order, too: tokens and the bare text depend on it
    if tuple(attrs) != tuple(op.attrs):
        expected, names = ", ".join(op.attrs) or "none", ", ".join(attrs) or "none"
        raise ScopeError(
            f"{op.name}: its attributes are ({expected}), found ({names})\n  in {line_of(fn, bind)}"
        )
    if op.holds_lambdas and not op.is_user_defined:
        _refuse_stray_bodies(fn, bind)
    if op.bodies is not None:
        _refuse_counts_of_bodies(fn, bind)
    types = _infer_types(fn, bind, bound=len(bind.binders))
    for binder, expected in zip(bind.binders, types, strict=True):
        declared = binder.type
        # either may be unknown: in untyped text, or if the shape is known only at run time
        if declared is not expected and declared is not None and expected is not None:
            error = ShapeError if declared.dtype == expected.dtype else DTypeError
            raise error(
                f"{op.name}: its result is {expected}, declared as {declared}\n"
                "  declare the type that the operands give, or leave it out\n"
                f"  in {line_of(fn, bind)}"
            )


def _refuse_stray_bodies(fn: Lambda, bind: Bind) -> None:
    """Raise DTypeError for an attribute that is a program but no body: passes would take it for a
    body. Such an attribute comes from the text of a program.
    """
    for name, value in bind.attrs.items():
        if name not in BODY_ATTRIBUTES and bodies_in((value,)):
            raise DTypeError(
                f"{bind.op.name}: its attribute {name} is a program\n"
                "  docs/operations.md lists the attributes of each operation\n"
                f"  in {line_of(fn, bind)}"
            )


def _refuse_counts_of_bodies(fn: Lambda, bind: Bind) -> None:
    """Raise DTypeError if an attribute that counts operands or results is not a number: a type rule
    reads it only if the types of all operands are known.
    """
    layout = bind.op.bodies
    assert layout is not None
    try:
        counts = [layout.n_carry(bind), layout.n_elements(bind), layout.own(bind)]
        counts += [bind.attrs[name] for name in layout.counts(bind, (), ())]
    except (TypeError, ValueError):
        counts = [None]
    if not all(type(n) is int and n >= 0 for n in counts):
        counts_text = ", ".join(
            f"{name}={value!r}" for name, value in bind.attrs.items() if name not in BODY_ATTRIBUTES
        )
        raise DTypeError(
            f"{bind.op.name}: a number of its operands or results is not an int of at least 0, "
            f"found {counts_text}\n"
            "  docs/operations.md lists the attributes of each operation\n"
            f"  in {line_of(fn, bind)}"
        )


def _infer_types(fn: Lambda, bind: Bind, args=None, attrs=None, bound: int | None = None) -> tuple:
    """The result types by the type rule; attributes of a parsed program may be arbitrary.

    ``bound``: the number of results that the bind binds; None: not counted.
    """
    op, args = bind.op, bind.args if args is None else args
    attrs = bind.attrs if attrs is None else attrs
    try:
        if bound is not None:  # before there is a type for each: sections=10**9
            _refuse_count(op, result_count(op, attrs), bound)
        types = result_types(op, args, attrs)
        if bound is not None:
            _refuse_count(op, len(types), bound)
        return types
    except LetirError as error:
        raise error_in_let(error, line_of(fn, bind), bind.source) from None
    except (RecursionError, MemoryError):  # of the process, not of the operands
        raise
    except Exception as error:  # whatever a rule runs into
        rule_error = error_of_rule(op, error)
        raise error_in_let(rule_error, line_of(fn, bind), bind.source) from error


def _refuse_count(op: Primitive, count: int, bound: int) -> None:
    """Raise ShapeError if an operation has more or fewer results than are bound."""
    if count != bound:
        raise ShapeError(
            f"{op.name} has {count} results, but {bound} are bound\n  bind each of its results"
        )


@entry_point
@paused_gc()
def retype(fn: Lambda, *types: ArrayType) -> Lambda:
    """``fn`` with parameters of these types (ArrayType, ShapeDtype or arrays), all other types
    inferred again.

    >>> from letir import ShapeDtype, parse
    >>> f = parse("lambda %0 { %1 = sum(%0, axis=0); return %1 }")
    >>> print(retype(f, ShapeDtype(("n", 3))))
    lambda %0: float64[n, 3] {
      %1: float64[3] = sum(%0, axis=0)
      return %1
    }
    """
    if len(types) != len(fn.params):
        raise ShapeError(
            f"retype: the program has {len(fn.params)} parameters, found {len(types)} types\n"
            "  pass one type for each array that the program takes"
        )
    fresh: dict = {}
    params = []
    for param, new_type in zip(fn.params, types, strict=True):
        aval = getattr(new_type, "type", new_type)
        is_type = aval is None or type(aval) is ArrayType
        if not is_type and not hasattr(aval, "dtype"):
            raise DTypeError(
                f"retype: a type is expected, found {new_type!r}\n"
                "  pass ArrayType, ShapeDtype or an array for each parameter, one by one"
            )
        fresh[param] = Local(aval if is_type else ArrayType(aval.dtype, aval.shape), param.name)
        params.append(fresh[param])
    binds = []
    sizes = given_sizes([p.type for p in fn.params], [p.type for p in params])
    for bind in fn.binds:
        args = tuple([fresh[arg] if type(arg) is Local else arg for arg in bind.args])
        attrs = resize_attrs(bind.attrs, sizes) if sizes else bind.attrs
        new_types = _infer_types(fn, bind, args, attrs)
        binders = tuple([Local(t, b.name) for t, b in zip(new_types, bind.binders, strict=True)])
        fresh.update(zip(bind.binders, binders, strict=True))
        binds.append(Bind(binders, bind.op, args, attrs, bind.source))
    ret = Ret(tuple([fresh[arg] if type(arg) is Local else arg for arg in fn.ret.args]))
    return Lambda(params, binds, ret, fn.in_tree, fn.out_tree)


LATE_BOUND.update(check=check, retype=retype)
