"""What a derivative program reads of the primal program [D4]: shared by the reverse and the forward
transform.
"""

from letir.ast.terms import Arg, Lambda, Local, Ret


class Captures:
    """Remembers which primal values a derivative program reads; there their own locals are its
    parameters.

    A value that is a result of ``fn`` is captured as that result, else an input as an input;
    another value becomes a temporary: a further result. ``results`` are those of ``fn`` and the
    temporaries.
    """

    def __init__(self, fn: Lambda):
        self.fn = fn
        self.results: list[Arg] = list(fn.ret.args)
        self.inputs: set[int] = set()  # positions, of which ``params`` makes the order
        self.outputs: set[int] = set()
        self._inputs = {param: i for i, param in enumerate(fn.params)}
        self._outputs: dict[Local, int] = {}
        for i, arg in enumerate(fn.ret.args):
            if type(arg) is Local:
                self._outputs.setdefault(arg, i)  # the first place of one that is returned twice

    def capture(self, local: Local) -> Local:
        """``local``, which is now a parameter of the derivative program."""
        position = self._outputs.get(local)
        # a result that is an input: as a result [D4]
        if position is None and local in self._inputs:
            self.inputs.add(self._inputs[local])
        else:
            if position is None:
                position = self._outputs[local] = len(self.results)
                self.results.append(local)
            self.outputs.add(position)
        return local

    def params(self) -> list[Local]:
        """The captured locals: inputs, then results, each in the order of their positions."""
        # sorted: the positions that a Gradient tells are in the order of these parameters
        return [self.fn.params[i] for i in sorted(self.inputs)] + [
            self.results[i] for i in sorted(self.outputs)
        ]

    def primal(self) -> Lambda:
        """``fn`` with the temporaries as further results."""
        return Lambda(self.fn.params, self.fn.binds, Ret(tuple(self.results)), self.fn.in_tree)
