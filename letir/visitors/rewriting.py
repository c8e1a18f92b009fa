"""Small changes to programs: rename, substitute, inline, lift free locals into parameters; graphs and back.

All return new programs, are linear, and share what they do not change.
"""

from collections.abc import Iterable, Mapping, Sequence

from attrs import define

from letir.ast.attrs import NO_ATTRS, Attrs
from letir.ast.builder import LetBuilder, result_types
from letir.ast.primitive import Primitive
from letir.ast.terms import Arg, Bind, Const, Lambda, Local, Ret
from letir.errors import ScopeError
from letir.visitors.visitor import ArgVisitor


class Substitution(ArgVisitor):
    """An argument with locals replaced by ``mapping``; others stay."""

    def visit_local(self, local: Local, mapping: Mapping[Local, Arg]) -> Arg:
        return mapping.get(local, local)

    def visit_const(self, const: Const, mapping) -> Arg:
        return const


def substitute(fn: Lambda, mapping: Mapping[Local, Arg]) -> Lambda:
    """``fn`` with every use of a local in ``mapping`` replaced; its parameters drop out where replaced."""
    visit = Substitution().visit
    binds = []
    for bind in fn.binds:
        args = tuple([visit(arg, mapping) for arg in bind.args])
        binds.append(bind if args == bind.args else Bind(bind.binders, bind.op, args, bind.attrs, bind.source))
    params = [param for param in fn.params if param not in mapping]
    in_tree = fn.in_tree if len(params) == len(fn.params) else None
    return Lambda(params, binds, Ret(tuple([visit(a, mapping) for a in fn.ret.args])), in_tree, fn.out_tree)


def rename(fn: Lambda, names: Mapping[Local, str] | None = None) -> Lambda:
    """An alpha-equal copy with fresh locals; those in ``names`` are called so, others keep their names."""
    names = names or {}
    fresh: dict[Local, Arg] = {}

    def copy(local):
        fresh[local] = made = Local(local.type, names.get(local, local.name))
        return made

    params = [copy(param) for param in fn.params]
    binds = []
    for bind in fn.binds:
        args = tuple([fresh[arg] if type(arg) is Local else arg for arg in bind.args])
        binds.append(Bind(tuple(map(copy, bind.binders)), bind.op, args, bind.attrs, bind.source))
    ret = Ret(tuple([fresh[arg] if type(arg) is Local else arg for arg in fn.ret.args]))
    return Lambda(params, binds, ret, fn.in_tree, fn.out_tree)


def inline(fn: Lambda, args: Sequence[Arg], builder: LetBuilder) -> tuple[Arg, ...]:
    """Add ``fn`` applied to ``args`` to ``builder`` and return its results there."""
    return builder.inline(fn, args)


def free_locals(params: Iterable[Local], binds: Iterable[Bind], ret: Ret) -> list[Local]:
    """The locals that are used but not bound, in order of first use."""
    bound, free = set(params), {}
    for bind in binds:
        free.update((local, None) for local in bind.locals() if local not in bound)
        bound.update(bind.binders)
    free.update((local, None) for local in ret.locals() if local not in bound)
    return list(free)


def lambda_lift(params: Sequence[Local], binds: Sequence[Bind], ret: Ret) -> tuple[Lambda, list[Local]]:
    """A closed Lambda with the free locals as further parameters, in order of first use, and those locals."""
    free = free_locals(params, binds, ret)
    return rename(Lambda([*params, *free], binds, ret)), free


@define(eq=False)
class Node:
    """A node of a graph of operations: operands are nodes, ``Input`` and constants; results are counted."""

    op: Primitive
    args: tuple
    attrs: Attrs = NO_ATTRS
    result: int = 0
    of: "Node | None" = None  # the node of which this is a further result

    @property
    def producer(self) -> "Node":
        """The node that computes this result."""
        return self.of or self


@define(eq=False)
class Input:
    """A parameter of a graph."""

    local: Local


def to_dag(fn: Lambda) -> tuple[list[Input], list[Node | Input | Const]]:
    """The inputs and the outputs of ``fn`` as a graph of nodes, in which a shared local is a shared node."""
    inputs = [Input(param) for param in fn.params]
    nodes: dict[Local, Node | Input] = dict(zip(fn.params, inputs, strict=True))
    for bind in fn.binds:
        args = tuple([nodes[arg] if type(arg) is Local else arg for arg in bind.args])
        node = Node(bind.op, args, bind.attrs)
        for i, binder in enumerate(bind.binders):
            nodes[binder] = node if i == 0 else Node(bind.op, (), bind.attrs, i, node)
    return inputs, [nodes[arg] if type(arg) is Local else arg for arg in fn.ret.args]


def from_dag(outputs: Sequence[Node | Input | Const], inputs: Sequence[Input] | None = None) -> Lambda:
    """The program that computes ``outputs``: every shared node is bound once, operands before their users.

    ``inputs``: the parameters, by default those that are reached, in order. Raises ScopeError for a cycle.
    """
    params = {node: node.local for node in inputs or ()}
    locals_: dict = {}
    binds: list[Bind] = []
    for node in _operands_first(outputs):
        if type(node) is Input:
            params.setdefault(node, node.local)
            continue
        args = tuple([_operand(arg, params, locals_) for arg in node.args])
        binders = tuple(map(Local, result_types(node.op, args, node.attrs)))
        locals_.update(((node, i), binder) for i, binder in enumerate(binders))
        binds.append(Bind(binders, node.op, args, node.attrs))
    ret = Ret(tuple([_operand(output, params, locals_) for output in outputs]))
    return rename(Lambda(params.values(), binds, ret))


def _operand(node, params, locals_) -> Arg:
    if type(node) is Node:
        return locals_[node.producer, node.result]
    return params[node] if type(node) is Input else node


def _operands_first(outputs) -> list:
    """Nodes in an order in which operands come before their users (depth first, with a stack of our own)."""
    order, state = [], {}
    stack = [node for node in reversed(outputs) if type(node) is not Const]
    while stack:
        node = stack[-1].producer if type(stack[-1]) is Node else stack[-1]
        if state.get(node) is None and type(node) is Node:
            state[node] = "open"
            below = [arg for arg in reversed(node.args) if type(arg) is not Const]
            if any(state.get(arg.producer if type(arg) is Node else arg) == "open" for arg in below):
                raise ScopeError(f"the graph has a cycle through {node.op.name}")
            stack.extend(below)
            continue
        stack.pop()
        if state.get(node) != "done":
            state[node] = "done"
            order.append(node)
    return order
