"""Visitors that traverse a program without using Python's stack, by returning tail calls.

A visit method takes a node and further arguments, which carry the state. It returns its result, or
``TailCall(node, ...)``, with which the driver continues at that node in the same Python frame.
"""

from typing import Any, ClassVar

from letir.ast.terms import Const, Lambda, Let, Local, Ret


class TailCall:
    """A request to continue with ``node`` and these arguments.

    >>> from letir import parse
    >>> answer = TailCall(parse("lambda %0 { %1 = exp(%0); return %1 }").body, 1)
    >>> type(answer.node).__name__, answer.args
    ('Let', (1,))
    """

    __slots__ = ("args", "kwargs", "node")

    def __init__(self, node, *args, **kwargs):
        self.node, self.args, self.kwargs = node, args, kwargs


class Visitor:
    """The base of both visitors: maps types of nodes to methods, checked at class creation."""

    variants: ClassVar[dict[type, str]] = {}
    _methods: ClassVar[dict[type, Any]] = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "variants" in cls.__dict__:  # an abstract class, such as ExprVisitor
            return
        missing = [name for name in cls.variants.values() if not hasattr(cls, name)]
        if missing:
            lacks = ", ".join(missing)
            raise TypeError(f"{cls.__name__} lacks {lacks}: a visitor handles every variant")
        cls._methods = {variant: getattr(cls, name) for variant, name in cls.variants.items()}

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        """The result of the method for the type of ``node``, after all tail calls."""
        methods = self._methods
        while True:
            try:
                method = methods[type(node)]  # the exact type: terms are not subclassed
            except KeyError:
                raise self.unexpected_node_error(node) from None
            # runs once per bind, mostly without keywords: an empty ** would make a dict each time
            answer = method(self, node, *args, **kwargs) if kwargs else method(self, node, *args)
            if type(answer) is not TailCall:
                return answer
            node, args, kwargs = answer.node, answer.args, answer.kwargs

    def unexpected_node_error(self, node: Any) -> TypeError:
        """The error for a node of a type that this visitor does not visit."""
        names = " and ".join(variant.__name__ for variant in self.variants)
        remedy = ": visit its body" if type(node) is Lambda else ""
        return TypeError(f"{type(self).__name__} visits {names}, not {type(node).__name__}{remedy}")


class ExprVisitor(Visitor):
    """Visits ``Let`` and ``Ret``: define ``visit_let(let, ...)`` and ``visit_ret(ret, ...)``.

    >>> from letir import ExprVisitor, TailCall, parse
    >>> class Depth(ExprVisitor):
    ...     def visit_let(self, let, n):
    ...         return TailCall(let.body, n + 1)
    ...
    ...     def visit_ret(self, ret, n):
    ...         return n
    >>> f = parse("lambda %0 { %1 = exp(%0); %2 = neg(%1); return %2 }")
    >>> Depth().visit(f.body, 0)
    2
    """

    variants: ClassVar = {Let: "visit_let", Ret: "visit_ret"}


class ArgVisitor(Visitor):
    """Visits ``Local`` and ``Const``: define ``visit_local(local, ...)``, ``visit_const(...)``.

    >>> from letir import ArgVisitor, parse
    >>> class Names(ArgVisitor):
    ...     def visit_local(self, local):
    ...         return local.name
    ...
    ...     def visit_const(self, const):
    ...         return repr(const.value)
    >>> f = parse("lambda %0:x { %1 = mul(%0, 2.0); return %1 }")
    >>> [Names().visit(arg) for arg in f.binds[0].args]
    ['x', '2.0']
    """

    variants: ClassVar = {Local: "visit_local", Const: "visit_const"}
