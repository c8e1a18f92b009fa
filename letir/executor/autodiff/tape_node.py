"""``GraphRunner``: a differentiable graph as one node of the eager tape.

Its forward runs as a plan on arrays; ``_GraphSpecialization`` tells the backward engine how to
differentiate it.
"""

from collections.abc import Sequence
from typing import Any

from attrs import define, field, frozen

from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Lambda, Ret
from letir.eager.mutation import share_with_operand
from letir.eager.op_cache import OpSpecialization, array_type, tuple_picker
from letir.eager.recorder import RECORDER, Recorder
from letir.eager.tape import (
    FREED,
    ORDER,
    Constant,
    GradEdge,
    ResultEdge,
    TapeNode,
    check_unchanged,
    freed_error,
    new_node,
)
from letir.eager.variable import Variable
from letir.eval.array_modules import array_module, is_array
from letir.executor.autodiff.gradient_plans import DifferentiableGraph
from letir.passes.dead_code_elimination import dead_code
from letir.plan.plan import plan_of


@frozen(eq=False)
class _GraphSpecialization(OpSpecialization):
    """The interface of ``OpSpecialization``, for one graph."""

    graph: DifferentiableGraph
    requires: tuple[bool, ...]  # for each operand, whether it requires grad in this call
    places: dict[int, int]  # operand or result position -> position among the saved values

    def rule_for(self, mask: tuple | None) -> Any:
        """The gradient program for these results with a gradient."""
        mask = (True,) * len(self.types) if mask is None else mask
        return self.graph.backward(mask, self.requires)

    def read(self, rule: Any, node: TapeNode) -> Sequence:
        """The values that the gradient program reads.

        Raises TraceError if one was freed, or changed in place.
        """
        values, count, places = node.kept, len(node), self.places
        if values is FREED:
            raise freed_error(node)
        exposed = node.notes is not None and not self.graph.exposed.isdisjoint(rule.captured)
        if exposed:  # the user changed a result that shares memory with a value to be read
            check_unchanged(node, node)
        for place in rule.captured:
            edge = node[place] if place < count else None
            if edge is not None and edge.notes is not None:
                check_unchanged(edge, node)
        return [values[places[place]] for place in rule.captured]

    def edges(self, rule: Any, node: TapeNode) -> list[GradEdge | None]:
        """The grad edges of these values; None for constants, even if the graph returns them."""
        count, flows = len(node), self.graph.flows
        result: list = []
        for place in rule.captured:
            n = place - count
            if n < 0:
                result.append(node[place])
            else:
                result.append(ResultEdge.for_result(self.types[n], node, n) if n in flows else None)
        return result

    def pull(self, rule: Any, emitter: Any, cts: list, captured: Sequence) -> tuple:
        """The gradients of the operands in ``rule.results``."""
        defined = [ct for ct in cts if ct is not None]
        return rule.run([*defined, *captured], isinstance(emitter, Recorder))


@define(eq=False)
class GraphRunner:
    """Runs a graph on Variables.

    Specializations are cached here, not on the graph: they refer to it, which would be a cycle.
    """

    graph: DifferentiableGraph
    specs: dict = field(factory=dict)
    types: tuple | None = field(init=False)  # of all results; None if sizes are symbolic

    def __attrs_post_init__(self):
        types = tuple([arg.type for arg in self.graph.f.ret.args])
        self.types = types if all(map(has_static_shape, types)) else None

    @property
    def plain_program(self) -> Lambda:
        """The forward program without temporaries, for calls that are not recorded."""
        if self.specs.get("plain") is None:
            f = self.graph.f
            primal = Lambda(f.params, f.binds, Ret(f.ret.args[: self.graph.count]))
            self.specs["plain"] = dead_code(primal)
        return self.specs["plain"]

    def run(self, operands: list, records: bool) -> tuple:
        """The real results for Variables, arrays and numbers; ``operands`` is emptied.

        Recorded as one node if ``records``.
        """
        variable = Variable
        arrays = [x.array if isinstance(x, variable) else x for x in operands]
        requires = tuple([isinstance(x, variable) and x.requires_grad for x in operands])
        positions, xp = self.graph.bind.attrs["df_output_vjps"], array_module(arrays)
        if not records or not any(requires[i] for i in positions):
            operands.clear()
            return plan_of(self.plain_program).run(arrays, xp)
        values = arrays[:]
        outs = plan_of(self.graph.f).run(arrays, xp)
        spec = self.cached_spec(requires, outs)
        order = ORDER()
        node = new_node(order, [getattr(x, "arg", None) for x in operands])
        node.set_fields(spec, spec.keep([*values, *outs]), order, self.graph.bind.source)
        del values
        result = self.wrap_results(node, spec, outs[: self.graph.count], operands)
        operands.clear()
        return result

    def wrap_results(
        self, node: TapeNode, spec: _GraphSpecialization, outs: tuple, operands: list
    ) -> tuple:
        """The real results as Variables."""
        result, operand_ids = [], {id(x.array) for x in operands if isinstance(x, Variable)}
        for i, out in enumerate(outs):
            if not is_array(out):
                result.append(out)
                continue
            aval = spec.types[i]
            arg = ResultEdge.for_result(aval, node, i) if i in self.graph.flows else Constant(aval)
            result.append(RECORDER.new_variable(out, arg))
            # a result may be an operand, another result, or a view of one
            if id(out) in operand_ids or getattr(out, "base", None) is not None:
                share_with_operand(result[-1], [*operands, *result[:-1]], spec)
            operand_ids.add(id(out))
        return tuple(result)

    def cached_spec(self, requires: tuple, outs: tuple) -> _GraphSpecialization:
        """The specialization for operands with these ``requires_grad`` flags."""
        types = self.types
        if types is None:  # sizes are symbolic: take the types of this call
            types = tuple([array_type(out) for out in outs])
        result = self.specs.get((requires, types))
        if result is None:
            result = self.specs[requires, types] = self.new_spec(requires, types)
        return result

    def new_spec(self, requires: tuple, types: tuple) -> _GraphSpecialization:
        """A new specialization for operands with these ``requires_grad`` flags."""
        attrs, args = self.graph.bind.attrs, self.graph.bind.args
        count = len(args)
        constants = [i for i in range(count) if not requires[i]]  # for ``history``
        captured = [count + i for i in attrs["df_input_captured_outputs"]]
        positions = tuple(sorted({*constants, *attrs["df_input_captured_inputs"], *captured}))
        return _GraphSpecialization(
            op=self.graph.bind.op,
            attrs=attrs,
            bind=self.graph.bind,
            types=types,
            type=None,
            compute=None,
            is_plain=False,
            is_unknown=True,
            requires_grad=True,
            needed=frozenset([a for a, is_needed in zip(args, requires, strict=True) if is_needed]),
            rule=None,
            missing=None,
            is_short=False,
            backward=None,
            kept=positions,
            keep=tuple_picker(positions * 2 if len(positions) == 1 else positions),
            unpack=None,
            watched=(),
            graph=self.graph,
            requires=requires,
            places={place: n for n, place in enumerate(positions)},
        )
