"""What a derivative program reads of the primal program [D4]: shared by the reverse and the forward transform."""

from letir.ast.builder import LetBuilder
from letir.ast.terms import Arg, Lambda, Local, Ret


class Captures:
    """Makes parameters of ``builder`` stand for primal values, and remembers for which.

    A value that is a result of ``fn`` is captured as that result, else an input as an input; another value becomes a
    temporary: a further result. ``results`` are those of ``fn`` and the temporaries.
    """

    def __init__(self, fn: Lambda, builder: LetBuilder):
        self.fn, self.builder = fn, builder
        self.results: list[Arg] = list(fn.ret.args)
        self.inputs: dict[int, Local] = {}
        self.outputs: dict[int, Local] = {}
        self._positions: dict[Local, int] = {}
        for i, arg in enumerate(fn.ret.args):
            if type(arg) is Local:
                self._positions.setdefault(arg, i)
        self._params = {param: i for i, param in enumerate(fn.params)}

    def is_captured_output(self, local: Local) -> bool:
        """Whether it is a result or a temporary already."""
        return local in self._positions

    def capture(self, local: Local) -> Local:
        """The parameter that stands for the primal value ``local``."""
        position = self._positions.get(local)
        if position is None and local in self._params:
            return self._captured(self.inputs, self._params[local], local)
        if position is None:
            position = self._positions[local] = len(self.results)
            self.results.append(local)
        return self._captured(self.outputs, position, local)

    def _captured(self, captured: dict[int, Local], position: int, local: Local) -> Local:
        found = captured.get(position)
        if found is None:
            found = captured[position] = Local(local.type, local.name)
        return found

    def params(self) -> list[Local]:
        """The captured parameters: inputs, then results, each in the order of their positions."""
        return [self.inputs[i] for i in sorted(self.inputs)] + [self.outputs[i] for i in sorted(self.outputs)]

    def primal(self) -> Lambda:
        """``fn`` with the temporaries as further results."""
        return Lambda(self.fn.params, self.fn.binds, Ret(tuple(self.results)), self.fn.in_tree)
