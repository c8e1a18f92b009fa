"""``history``: the recorded tape of Variables as a program."""

from collections.abc import Sequence
from typing import Any

from letir.ast import entry_point
from letir.ast.builder import LetBuilder
from letir.ast.process_state import paused_gc
from letir.ast.terms import Arg, Const, Lambda, Local
from letir.eager.backward_pass.entry_points import _flat_values, owning_node
from letir.eager.recorder import Recorder
from letir.eager.tape import FREED, GradEdge, Leaf, ResultEdge, TapeNode, check_unchanged, node_line
from letir.errors import TraceError
from letir.eval.array_modules import is_array
from letir.tracing.source_locations import error_at_user_line


@entry_point
@paused_gc()
def history(outputs: Any, inputs: Sequence | None = None) -> Lambda:
    """The program that computed ``outputs``, a Variable or a sequence of them.

    Its parameters are ``inputs`` if given (another leaf that requires grad is then an error), else
    the leaves that require grad in the order of their first use. Values that do not require grad
    become constants. Linear in the number of operations.

    >>> from letir import Variable
    >>> x = Variable(3.0, requires_grad=True, name="x")
    >>> print(history(x * x + 1.0).listing(), end="")
    %1 = mul %0, %0
    %2 = add %1, 1.0
    return %2
    """
    results = _flat_values(outputs)
    for variable in (*results, *_flat_values(inputs)):
        if not isinstance(variable, Recorder.variable):
            raise error_at_user_line(
                TraceError(
                    f"history: expected Variables, found {type(variable).__name__}\n"
                    "  pass a result of letir.Variable(array, requires_grad=True)"
                )
            )
    writer = _Writer(None if inputs is None else _flat_values(inputs))
    for node in _nodes_before([variable.arg for variable in results]):
        writer.write(node)
    return writer.builder.build([writer.output(variable) for variable in results])


def _nodes_before(edges: Sequence[GradEdge]) -> list[TapeNode]:
    """The nodes of a history, in the order in which they were computed."""
    result, todo = set(), list(edges)
    while todo:
        node = owning_node(todo.pop())
        if isinstance(node, TapeNode) and node not in result:
            result.add(node)
            todo += [arg for arg in node.args if arg is not None]
    # operands were computed before their users
    return sorted(result, key=lambda node: node.order)


class _Writer:
    """Writes tape nodes as binds of a program. ``inputs``: the parameters, if they are given."""

    def __init__(self, inputs: list | None):
        self.builder = LetBuilder()
        self.only_inputs = inputs is not None
        self.names: dict = {}  # edge, (node, index) or id of an array -> local
        self.alive: list = []  # arrays whose ids are keys, and which must not be freed
        for variable in inputs or ():
            self.names[variable.arg] = self.param(variable.arg)

    def param(self, leaf: GradEdge) -> Local:
        """A new parameter for a leaf."""
        return self.builder.param(leaf.type, getattr(leaf, "name", None)).arg

    def write(self, node: TapeNode) -> None:
        """Append the bind of one node."""
        spec, builder = node.spec, self.builder
        if node.kept is FREED and spec.kept:
            raise TraceError(
                f"history: the values of {spec.op.name} were freed by backward{node_line(node)}\n"
                "  write backward(retain_graph=True), or call history before backward"
            )
        builder.source = node.source
        args = tuple([self.operand(node, i, arg) for i, arg in enumerate(node.args)])
        types = None if None in spec.types else spec.types
        binders = builder.emit(spec.op, args, spec.attrs, types)
        if node.type is not None:
            self.names[node] = binders[0]
        else:
            self.names.update(((node, i), binder) for i, binder in enumerate(binders))

    def operand(self, node: TapeNode, place: int, edge: GradEdge | None) -> Arg:
        """The operand of a node at this position."""
        if edge is not None:
            result = self.edge(edge)
            if result is not None:
                return result
            if edge.notes is not None:
                check_unchanged(edge, node)
        return self.value(node.kept[node.spec.kept.index(place)])

    def edge(self, edge: GradEdge) -> Local | None:
        """The local of a value that requires grad or is an input; None for other values."""
        # each Variable has its own edge: node and index identify the result
        result = self.names.get((edge.node, edge.index) if type(edge) is ResultEdge else edge)
        if result is None and type(edge) is Leaf:
            if self.only_inputs:
                raise error_at_user_line(
                    TraceError(
                        f"history: a leaf of type {edge.type} requires grad and is not among "
                        "the inputs\n"
                        "  add it to inputs, or detach it before it is used"
                    )
                )
            result = self.names[edge] = self.param(edge)
        return result

    def value(self, value) -> Arg:
        """A number, or an array constant, which is bound once."""
        if not is_array(value):
            return Const(value)
        result = self.names.get(id(value))
        if result is None:
            self.alive.append(value)
            result = self.names[id(value)] = self.builder.constant(value)
        return result

    def output(self, variable) -> Arg:
        """The local of a result."""
        result = self.edge(variable.arg)
        return self.value(variable.array) if result is None else result
