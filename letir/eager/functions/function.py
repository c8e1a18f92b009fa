"""``Function``: a user-defined operation with a forward and a backward written in Python."""

import functools
from collections.abc import Callable
from typing import Any

from letir.ast import LATE_BOUND, entry_point
from letir.ast.primitive import Primitive
from letir.eager.functions.context import Context, is_among, place_among
from letir.eager.functions.function_cache import FunctionSpecialization, Saved
from letir.eager.functions.operation import call_traced, make_operation
from letir.eager.grad_mode import is_grad_enabled, no_grad
from letir.eager.mutation import add_view, memory_root, note_change, refuse_write
from letir.eager.recorder import RECORDER
from letir.eager.tape import ORDER, Constant, ResultEdge, new_node
from letir.eager.variable import Variable
from letir.errors import DTypeError, MissingRule, TraceError
from letir.eval.array_modules import is_array
from letir.tracing.source_locations import at_user, user_place
from letir.tracing.tracer import Tracer

_METHOD_REMEDY = "write it in the class, below @staticmethod"


class Function:
    """An operation with ``forward(ctx, *args)`` and ``backward(ctx, *grads)``, both static methods;
    ``apply(*args)`` calls it.

    forward computes with Variables without recording, and returns a Variable or a tuple of them.
    backward gets the gradient of each result and returns one for each argument of forward: None for
    a zero gradient, and for arguments that are not arrays. With ``create_graph`` it is recorded.
    In a trace the call is one opaque operation whose backward runs forward again for its ctx;
    with ``traceable = True`` both are recorded instead.

    >>> class Scaled(Function):
    ...     @staticmethod
    ...     def forward(ctx, x, s):
    ...         ctx.s = s
    ...         return s * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return ctx.s * grad, None
    >>> x = Variable(2.0, requires_grad=True)
    >>> Scaled.apply(x, 3).backward()
    >>> x.grad
    Variable(3.)
    """

    operation: Primitive
    traceable = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.operation = make_operation(cls)

    @entry_point
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise DTypeError(
            f"{name}: a Function is applied, objects of its class are not made{at_user()}\n"
            f"  write {name}.apply(x)"
        )

    @staticmethod
    def forward(ctx: Context, *args: Any) -> Any:
        """The result, a Variable or a tuple of them."""
        raise MissingRule(
            f"a Function must define forward(ctx, *args){at_user()}\n  {_METHOD_REMEDY}"
        )

    @staticmethod
    def backward(ctx: Context, *grads: Any) -> Any:
        """The gradients of the arguments of forward."""
        raise MissingRule(
            f"a Function must define backward(ctx, *grads){at_user()}\n  {_METHOD_REMEDY}"
        )

    @classmethod
    @entry_point
    def apply(cls, *args: Any) -> Any:
        """The results as Variables, recorded as one node."""
        if any(isinstance(arg, Tracer) for arg in args):
            return call_traced(cls, args)
        needs = tuple([isinstance(arg, Variable) and arg.requires_grad for arg in args])
        # before forward, which may change arguments in place and so give them new edges
        edges = [arg.arg if isinstance(arg, Variable) else None for arg in args]
        ctx = Context(cls.__name__, needs)
        with no_grad():
            returned = LATE_BOUND["call_rule"](f"{cls.__name__}.forward", cls.forward, ctx, *args)
        results = returned if isinstance(returned, tuple) else (returned,)
        outs = [_output_variable(result, args, ctx) for result in results]
        _check_dirty(ctx, args, results)
        if any(needs) and is_grad_enabled():  # the caller's mode: forward ran under no_grad
            _record_call(cls, ctx, args, edges, outs, single=not isinstance(returned, tuple))
        # the node has copies of all it needs; a ctx with results would keep them alive
        ctx._saved, ctx._dirty, ctx._without_gradient = None, (), ()
        return tuple(outs) if isinstance(returned, tuple) else outs[0]


def _record_call(
    function, ctx: Context, args: tuple, edges: list, outs: list, single: bool
) -> None:
    """Give the results of a call their grad edges: a node with the saved values."""
    saved = [Saved.from_value(value, args, edges, outs) for value in ctx.saved_tensors]
    spec = FunctionSpecialization(function, ctx, args, saved, outs)
    spec.type = spec.types[0] if single else None
    values_kept = [
        getattr(args[spec.operands[k]], "array", args[spec.operands[k]]) for k in spec.kept
    ]
    values_kept += [getattr(value, "array", value) for value in ctx.saved_tensors]
    links = [edges[i] for i in spec.operands]
    order = ORDER()
    # 3: the frame that called ``apply``
    node = new_node(order, links).set_fields(spec, tuple(values_kept), order, user_place(3)[0])
    for i, out in enumerate(outs):
        if not isinstance(out, Variable):
            continue
        if is_among(out, ctx._without_gradient) or not out.type.inexact:
            out.arg = Constant(out.type)
        else:
            out.arg = node if single else ResultEdge.for_result(out.type, node, i)
        if memory_root(out).sharing is not None:
            memory_root(out).sharing.edges.add(out.arg)


def _output_variable(result, args: tuple, ctx: Context):
    """A result of forward as a new Variable; a result that is not an array stays unchanged."""
    if is_array(result):
        return Variable(result, copy=False)
    if not isinstance(result, Variable) or is_among(result, ctx._dirty):
        return result
    if result.is_leaf and not result.requires_grad and place_among(result, args) is None:
        return result
    # a returned argument or view becomes a new Variable too, so that it can have its own edge
    variable = RECORDER.new_variable(result.array, Constant(result.type))
    if not result.is_scalar():
        add_view(variable, result)
    return variable


def _check_dirty(ctx: Context, args: tuple, results: tuple) -> None:
    """Note the in-place changes of arguments marked as dirty. Raises TraceError for wrong marks."""
    for variable in ctx._dirty:
        if not is_among(variable, args) or not is_among(variable, results):
            raise TraceError(
                f"{ctx._function}: a value marked as dirty must be an argument of forward that it "
                f"returns{at_user()}\n"
                "  mark what forward changes in place, and return it"
            )
        base = memory_root(variable)
        is_view = base is not variable and not variable.sharing.detached
        if is_grad_enabled() and any(ctx.needs_input_grad):
            refuse_write(variable, base, is_view)
            if is_view:
                raise TraceError(
                    f"{ctx._function}: a view cannot be marked as dirty{at_user()}\n"
                    "  pass a copy, x[i].copy(), and write the result back"
                )
        note_change(variable, base)


@entry_point
def once_differentiable(backward: Callable) -> Callable:
    """Decorate a ``backward`` that cannot be differentiated: a second derivative raises.

    >>> class Square(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @once_differentiable
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 2.0 * x * grad
    >>> x = Variable(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    Variable(6.)
    """
    LATE_BOUND["refuse_unless_function"]("once_differentiable", backward)

    @functools.wraps(backward)
    def once(ctx, *grads):
        return backward(ctx, *grads)

    marked: Any = once  # Any, because functions have no declared attributes
    marked.is_once_differentiable = True
    return marked
