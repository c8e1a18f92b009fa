"""Renaming, substitution, inlining and lambda lifting; conversion to graphs and back.

All functions return new programs, take linear time, and share unchanged parts.
"""

from collections.abc import Iterable, Mapping, Sequence

from attrs import define

from letir.ast import entry_point
from letir.ast.attrs import NO_ATTRS, Attrs
from letir.ast.builder import LetBuilder, result_types
from letir.ast.primitive import Primitive
from letir.ast.terms import Arg, Bind, Const, Lambda, Local, Ret, Source
from letir.ast.text.printer import line_of
from letir.errors import DTypeError, LetirError, ScopeError


def substitute(fn: Lambda, mapping: Mapping[Local, Arg]) -> Lambda:
    """``fn`` with every use of a local in ``mapping`` replaced; replaced parameters are removed."""
    # bodies in attributes are closed, so they use no local of the mapping
    binds = [bind.substitute(mapping) for bind in fn.binds]
    params = [param for param in fn.params if param not in mapping]
    return fn.replace(params=params, binds=binds, ret=fn.ret.substitute(mapping))


def rename(fn: Lambda, names: Mapping[Local, str] | None = None) -> Lambda:
    """An alpha-equal copy with fresh locals, named by ``names`` or as before."""
    names = names or {}
    fresh: dict[Local, Arg] = {}

    def copy(local):
        fresh[local] = result = Local(local.type, names.get(local, local.name))
        return result

    params = [copy(param) for param in fn.params]
    binds = []
    for bind in fn.binds:
        args = tuple([fresh[arg] if type(arg) is Local else arg for arg in bind.args])
        binds.append(Bind(tuple(map(copy, bind.binders)), bind.op, args, bind.attrs, bind.source))
    ret = Ret(tuple([fresh[arg] if type(arg) is Local else arg for arg in fn.ret.args]))
    return Lambda(params, binds, ret, fn.in_tree, fn.out_tree)


def inline(fn: Lambda, args: Sequence[Arg], builder: LetBuilder) -> tuple[Arg, ...]:
    """Append the binds of ``fn`` on ``args`` to ``builder``, and return its results."""
    return builder.inline(fn, args)


def free_locals(params: Iterable[Local], binds: Iterable[Bind], ret: Ret) -> list[Local]:
    """The locals that are used but not bound, in order of first use."""
    bound = set(params)
    free: dict[Local, None] = {}  # an ordered set
    for bind in binds:
        free.update((local, None) for local in bind.locals() if local not in bound)
        bound.update(bind.binders)
    free.update((local, None) for local in ret.locals() if local not in bound)
    return list(free)


def lambda_lift(
    params: Sequence[Local], binds: Sequence[Bind], ret: Ret
) -> tuple[Lambda, list[Local]]:
    """(closed Lambda, free locals); the free locals are its last parameters, by first use."""
    free = free_locals(params, binds, ret)
    # with fresh locals, because a local is bound in one program only
    return rename(Lambda([*params, *free], binds, ret)), free


@define(eq=False, repr=False)
class Node:
    """A node of a graph of operations; its operands are nodes, ``Input``s and constants.

    ``result``: the position of the result that the node stands for. The further results of an
    operation are nodes without operands, whose ``of`` is the node of the first result.

    >>> from letir import ArrayType, from_dag
    >>> from letir.extend import PRIMITIVES, Input, Node
    >>> x = Input(Local(ArrayType(float), "x"))
    >>> y = Node(PRIMITIVES["exp"], (x,))
    >>> print(from_dag([Node(PRIMITIVES["mul"], (y, y))]).listing(), end="")
    %1 = exp %0
    %2 = mul %1, %1
    return %2
    """

    op: Primitive
    args: tuple
    attrs: Attrs = NO_ATTRS
    result: int = 0
    of: "Node | None" = None  # for a further result, the node of the first one
    source: Source | None = None

    @property
    def producer(self) -> "Node":
        """The node that computes this result."""
        return self.of or self

    def __repr__(self):
        return f"Node({self.op.name}, result {self.result})"  # without operands, which are shared


@define(eq=False)
class Input:
    """A parameter of a graph of operations; ``local`` has its type and name.

    >>> from letir import ArrayType, from_dag
    >>> x = Input(Local(ArrayType(float), "x"))
    >>> print(from_dag([x]))
    lambda %0:x: float64[] {
      return %0
    }
    """

    local: Local


@entry_point
def to_dag(fn: Lambda) -> tuple[list[Input], list[Node | Input | Const]]:
    """(inputs, outputs) of ``fn`` as a graph, in which a shared local is a shared node.

    Only nodes that outputs need are reachable. Raises LetirError for an operation with an effect: a
    graph does not order effects.

    >>> from letir import parse
    >>> f = parse("lambda %0:x { %1 = exp(%0); %2 = mul(%1, %1); return %2 }")
    >>> (x,), (y,) = to_dag(f)
    >>> y, y.args[0] is y.args[1], y.args[0].args[0] is x
    (Node(mul, result 0), True, True)
    """
    inputs = [Input(param) for param in fn.params]
    nodes: dict[Local, Node | Input] = dict(zip(fn.params, inputs, strict=True))
    for bind in fn.binds:
        if bind.op.effect:
            raise LetirError(
                f"to_dag: a graph cannot hold the effect of {line_of(fn, bind)}\n"
                "  remove prints and writes first, with letir.passes.without_writes"
            )
        args = tuple([nodes[arg] if type(arg) is Local else arg for arg in bind.args])
        node = Node(bind.op, args, bind.attrs, source=bind.source)
        for i, binder in enumerate(bind.binders):
            # nodes of further results have no operands: those are in the node `of`
            nodes[binder] = node if i == 0 else Node(bind.op, (), bind.attrs, i, node)
    return inputs, [nodes[arg] if type(arg) is Local else arg for arg in fn.ret.args]


@entry_point
def from_dag(
    outputs: Sequence[Node | Input | Const], inputs: Sequence[Input] | None = None
) -> Lambda:
    """The program that computes ``outputs``, with a shared node bound once, operands before users.

    ``inputs``: the first parameters; others follow in the order in which they are reached. Raises
    ScopeError for a cycle.

    >>> from letir import parse
    >>> f = parse("lambda %0 { %1 = exp(%0); %2 = mul(%1, %1); return %2 }")
    >>> inputs, outputs = to_dag(f)
    >>> from_dag(outputs, inputs) == f
    True
    """
    _check_nodes("an output", outputs, (Node, Input, Const))
    _check_nodes("an input", inputs or (), (Input,))
    params: dict[Input, Local] = {}
    locals_: dict = {}
    binds: list[Bind] = []
    for node in (*(inputs or ()), *_operands_first(outputs)):
        if type(node) is Input:
            if node not in params:
                params[node] = Local(node.local.type, node.local.name)
            continue
        args = tuple([_operand_of_node(arg, params, locals_) for arg in node.args])
        binders = tuple(map(Local, result_types(node.op, args, node.attrs)))
        locals_.update(((node, i), binder) for i, binder in enumerate(binders))
        binds.append(Bind(binders, node.op, args, node.attrs, node.source))
    ret = Ret(tuple([_operand_of_node(output, params, locals_) for output in outputs]))
    return Lambda(params.values(), binds, ret)


def _check_nodes(part: str, nodes: Sequence, kinds: tuple) -> None:
    """Raise DTypeError unless ``nodes``, which errors call ``part``, is a list of graph nodes."""
    names = ", ".join(kind.__name__ for kind in kinds)
    if not isinstance(nodes, list | tuple):
        raise DTypeError(
            f"from_dag: {part} is expected in a list, found {type(nodes).__name__}\n"
            "  pass a list of nodes, such as the outputs of to_dag"
        )
    for node in nodes:
        if type(node) not in kinds:
            raise DTypeError(
                f"from_dag: {part} is {type(node).__name__}, expected {names}\n"
                "  take nodes from letir.to_dag, or make them with letir.extend.Node"
            )


def _operand_of_node(node, params, locals_) -> Arg:
    """The operand that a node of the dag becomes in the program."""
    if type(node) is Node:
        return locals_[node.producer, node.result]
    return params[node] if type(node) is Input else node


def _operands_first(outputs) -> list:
    """The nodes in depth-first order, operands before their users, with an explicit stack."""
    order: list[Node | Input] = []
    state: dict[Node | Input, str] = {}
    stack = _producing_nodes(outputs)
    while stack:
        node = stack[-1]
        # the node stays on the stack below its operands, and is finished after them
        if state.get(node) is None and type(node) is Node:
            state[node] = "open"
            below = _producing_nodes(node.args)
            # open nodes are on the path from an output to this node
            if any(state.get(arg) == "open" for arg in below):
                raise ScopeError(
                    f"the graph has a cycle through {node.op.name}\n"
                    "  a node cannot depend on itself"
                )
            stack.extend(below)
            continue
        stack.pop()
        if state.get(node) != "done":  # a shared node may be on the stack twice
            state[node] = "done"
            order.append(node)
    return order


def _producing_nodes(nodes) -> list:
    """The nodes that compute these arguments, in reverse; constants have none."""
    # reversed, for a stack: the first operand is bound first
    return [n.producer if type(n) is Node else n for n in reversed(nodes) if type(n) is not Const]
