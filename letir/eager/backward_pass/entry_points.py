"""``backward`` and ``gradients``: gradients with respect to the leaves, or to given inputs."""

from operator import attrgetter
from typing import Any

import numpy as np

from letir.ast import entry_point
from letir.ast.process_state import new_lock
from letir.eager.backward_pass.engine import add_gradient
from letir.eager.backward_pass.parallel import make_engine
from letir.eager.grad_mode import recording_set
from letir.eager.recorder import Recorder
from letir.eager.tape import GradEdge, Leaf, ResultEdge, TapeNode, owning_node
from letir.errors import ShapeError, TraceError
from letir.eval.array_modules import array_module, is_array
from letir.tracing.source_locations import error_at_user_line
from letir.transforms.directions import as_direction

_ACCUMULATING = new_lock()  # two threads may add to one .grad


@entry_point
def backward(
    outputs: Any,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    *,
    workers: int = 1,
) -> None:
    """Add the gradients of ``outputs``, a Variable or several, to the ``.grad`` of their leaves.

    Like ``Variable.backward``, with a gradient for each output.

    >>> import numpy as np
    >>> import letir as lt
    >>> x = lt.Variable(np.array([1.0, 2.0]), requires_grad=True)
    >>> lt.eager.backward((x * x).sum())
    >>> x.grad
    Variable([2., 4.])
    """
    outputs = _flat_values(outputs)
    cotangents = _output_cotangents(outputs, _flat_values(gradient), create_graph)
    keeps = create_graph if retain_graph is None else retain_graph
    # changed only after all seeds are checked: an error must leave every .grad unchanged
    run = make_engine(workers, create_graph, keeps)
    with recording_set(create_graph):
        owned = _GradientCopies(cotangents)
        for edge, ct in run.run(cotangents).items():
            if type(edge) is Leaf:
                with _ACCUMULATING:
                    edge.grad = add_gradient(edge.grad, owned(ct))


@entry_point
def gradients(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    allow_unused: bool = False,
    *,
    workers: int = 1,
) -> Any:
    """The gradients of ``outputs`` with respect to ``inputs``, each a Variable or a sequence.

    ``grad_outputs``: a cotangent for each output, None for a scalar. No ``.grad`` changes. An input
    on which no output depends is an error, or None with ``allow_unused``. ``workers`` as in
    ``Variable.backward``.

    >>> from letir import Variable
    >>> x = Variable(3.0, requires_grad=True)
    >>> dx = gradients(x * x * x, x, create_graph=True)
    >>> dx, gradients(dx, x)
    (Variable(27., requires_grad=True), Variable(18.))
    """
    outputs, variables = _flat_values(outputs), _flat_values(inputs)
    cotangents = _output_cotangents(outputs, _flat_values(grad_outputs), create_graph)
    for i, variable in enumerate(variables):
        if not isinstance(variable, Recorder.variable) or not variable.requires_grad:
            raise error_at_user_line(
                TraceError(
                    f"gradients: input {i} must be a Variable that requires grad\n"
                    "  make it with letir.Variable(array, requires_grad=True)"
                )
            )
    edges = [variable.arg for variable in variables]
    needed = _edges_between([edge for edge, _ in cotangents], edges)
    keeps = create_graph if retain_graph is None else retain_graph
    run = make_engine(workers, create_graph, keeps, edges, needed)
    with recording_set(create_graph):
        by_edge = run.run([(edge, ct) for edge, ct in cotangents if edge in needed])
    owned = _GradientCopies(cotangents)
    results = tuple(
        [
            _gradient_or_zeros(i, variable, by_edge, needed, allow_unused, owned)
            for i, variable in enumerate(variables)
        ]
    )
    return results[0] if isinstance(inputs, Recorder.variable) else results


def _gradient_or_zeros(i: int, variable, by_edge: dict, needed: set, allow_unused: bool, owned):
    """The gradient with respect to input ``i``: zeros if the rules returned none, None if no output
    depends on the input.
    """
    ct = by_edge.get(variable.arg)
    if ct is not None:
        return add_gradient(None, owned(ct))
    if variable.arg in needed:
        return Recorder.variable(array_module([variable.array]).zeros_like(variable.array))
    if allow_unused:
        return None
    raise error_at_user_line(
        TraceError(
            f"gradients: no output depends on input {i}, {variable.type}\n"
            "  leave it out, or pass allow_unused=True, which gives None"
        )
    )


def _flat_values(values) -> list:
    """A Variable or a sequence of Variables as a list; None as an empty one."""
    if values is None:
        return []
    return list(values) if isinstance(values, tuple | list) else [values]


def _output_cotangents(
    outputs: list, cotangents: list, records: bool
) -> list[tuple[GradEdge, object]]:
    """(edge, cotangent) of each output. Raises unless there are outputs that require grad."""
    if not outputs:
        raise error_at_user_line(
            TraceError("backward: there is no output\n  pass a Variable, or a list of them")
        )
    if cotangents and len(cotangents) != len(outputs):
        raise error_at_user_line(
            ShapeError(
                f"backward: {len(outputs)} outputs, but {len(cotangents)} gradients\n"
                "  pass a list with one gradient for each output, None for a scalar"
            )
        )
    result = []
    for output, ct in zip(outputs, cotangents or [None] * len(outputs), strict=True):
        if not isinstance(output, Recorder.variable) or not output.requires_grad:
            raise error_at_user_line(
                TraceError(
                    f"backward of {output!r}, which does not require grad: "
                    "nothing was recorded\n"
                    "  give the Variables that it depends on requires_grad=True, outside no_grad()"
                )
            )
        result.append((output.arg, _output_cotangent(output, ct, records)))
    return result


def _output_cotangent(output, ct, records: bool):
    """The cotangent of an output: as given, by default 1 for a real scalar."""
    if ct is None:
        if output.size != 1 or output.dtype.kind == "c":
            raise error_at_user_line(
                ShapeError(
                    f"backward of {output.type}, which is not a real scalar, needs a gradient\n"
                    "  pass a gradient of this type, or sum the output first"
                )
            )
        ct = array_module([output.array]).ones_like(output.array)[()]  # the dtype of the output
    ct = as_direction(ct, output.type, "gradient")
    if records:
        return ct if isinstance(ct, Recorder.variable) else Recorder.variable(ct)
    return ct.array if isinstance(ct, Recorder.variable) else ct


class _GradientCopies:
    """Copies gradients where needed, so that each one returned to the user owns its memory.

    Rules may return one array, or views of it, for several operands.
    """

    def __init__(self, cotangents: list):
        self.seen = {id(ct): ct for _, ct in cotangents}  # keeps them alive, so that ids stay valid

    def __call__(self, ct):
        if isinstance(ct, Recorder.variable):
            ct = ct.copy() if id(ct) in self.seen else ct
            self.seen[id(ct)] = ct
            return ct
        if not is_array(ct) or isinstance(ct, np.generic):
            return ct
        is_writeable = getattr(ct.flags, "writeable", True)  # CuPy arrays lack this flag
        # an array with a base is a view
        if id(ct) in self.seen or ct.base is not None or not is_writeable:
            ct = ct.copy()
        self.seen[id(ct)] = ct
        return ct


def _edges_between(outputs: list[GradEdge], inputs: list[GradEdge]) -> set[GradEdge]:
    """The edges on paths from ``outputs`` to ``inputs``, both included.

    An input on which no output depends is on no path.
    """
    reached, nodes, todo = set(outputs), [], [*outputs]
    while todo:
        node = owning_node(todo.pop())
        if isinstance(node, TapeNode):
            nodes.append(node)
            for arg in node.args:
                if arg is not None and arg.requires_grad and arg not in reached:
                    reached.add(arg)
                    todo.append(arg)
    needed = reached.intersection(inputs)
    # operands come before users, so one pass is enough
    for node in sorted(nodes, key=attrgetter("order")):
        for arg in node.args:
            if arg in needed:
                needed.add(node)
            elif type(arg) is ResultEdge and arg.node in needed:
                needed.update((arg, node))
    needed.update([output for output in outputs if owning_node(output) in needed])
    return needed
