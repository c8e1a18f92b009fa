"""``Gradient``, the result of ``differentiate``: a primal program and its gradient program.

``Captures`` collects the primal values that a derivative program reads [semantics.md D4]; the
reverse and the forward transform share it.
"""

from collections.abc import Callable
from typing import Any

from attrs import evolve, frozen

from letir.ad.symbolic_zeros import UNDEFINED, Specializer, zeros_of_type
from letir.ast import LATE_BOUND, entry_point
from letir.ast.builder import LetBuilder
from letir.ast.process_state import paused_gc
from letir.ast.pytrees import LEAF, Tree
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.ast.types import Undef
from letir.errors import ShapeError
from letir.eval.arguments import checked_arguments, flat_arguments
from letir.eval.array_modules import array_module, evaluator_of
from letir.eval.evaluator import run_flat

Policy = str | Callable[[Bind], bool]  # chooses the residuals, see letir.ad.remat.policies


class Captures:
    """The primal values that a derivative program of ``fn`` reads, as parameters of that program.

    A result of ``fn`` is captured as a result, an input as an input; any other value becomes a
    temporary, a further result of the primal program. ``results``: the results of ``fn``, then the
    temporaries. A captured value has the same local in both programs.
    """

    def __init__(self, fn: Lambda):
        self.fn = fn
        self.results: list[Arg] = list(fn.ret.args)
        self.inputs: set[int] = set()  # positions; ``params`` sorts them
        self.outputs: set[int] = set()
        self._inputs = {param: i for i, param in enumerate(fn.params)}
        self._outputs: dict[Local, int] = {}
        for i, arg in enumerate(fn.ret.args):
            if type(arg) is Local:
                self._outputs.setdefault(arg, i)  # the first position, if it is returned twice

    def capture(self, local: Local) -> Local:
        """Make ``local`` a parameter of the derivative program, and return it."""
        position = self._outputs.get(local)
        # an input that is returned is captured as a result [semantics.md D4]
        if position is None and local in self._inputs:
            self.inputs.add(self._inputs[local])
        else:
            if position is None:
                position = self._outputs[local] = len(self.results)
                self.results.append(local)
            self.outputs.add(position)
        return local

    def params(self) -> list[Local]:
        """The captured locals: inputs, then results, both sorted by position."""
        # sorted, because the positions in the fields of a Gradient are sorted
        inputs = map(self.fn.params.__getitem__, sorted(self.inputs))
        results = [self.results[i] for i in sorted(self.outputs)]
        return [*inputs, *[arg for arg in results if type(arg) is Local]]

    def primal(self) -> Lambda:
        """``fn`` with the temporaries as further results."""
        return Lambda(self.fn.params, self.fn.binds, Ret(tuple(self.results)), self.fn.in_tree)


@frozen(eq=False, repr=False)
class Gradient:
    """A primal program ``f`` and its gradient program ``df``.

    The first ``f_real_outputs`` results of ``f`` are the user's results, the others are
    temporaries. ``df`` takes a cotangent for each result of ``f`` in ``df_input_vjps``, then the
    captured inputs and results of ``f``; it returns the cotangents of the inputs in
    ``df_output_vjps``.

    >>> import numpy as np
    >>> from letir import differentiate, trace
    >>> g = differentiate(trace(lambda x: np.exp(x).sum(), np.zeros(2)))
    >>> [bind.op.name for bind in g.f.binds], [bind.op.name for bind in g.df.binds]
    (['exp', 'sum'], ['grad_of', 'autograd_add', 'grad_of'])
    """

    f: Lambda
    df: Lambda
    f_real_outputs: int
    df_input_vjps: tuple[int, ...]
    df_input_captured_inputs: tuple[int, ...]
    df_input_captured_outputs: tuple[int, ...]
    df_output_vjps: tuple[int, ...]
    out_tree: Any = None

    @entry_point
    def forward(self, *args: Any, **kwargs: Any) -> tuple[Any, tuple]:
        """Evaluate ``f``; returns (results, residuals), the latter for ``backward``."""
        leaves = flat_arguments(self.f, args, kwargs)
        checked_arguments(self.f, leaves)
        inputs = [leaves[i] for i in self.df_input_captured_inputs]
        results = run_flat(self.f, leaves)
        residuals = (*inputs, *(results[i] for i in self.df_input_captured_outputs))
        real = results[: self.f_real_outputs]
        if self.out_tree is not None:
            return self.out_tree.unflatten(real), residuals
        return (real[0] if len(real) == 1 else real), residuals

    @entry_point
    def backward(self, residuals: tuple, *cts: Any) -> tuple:
        """The cotangents of the inputs in ``df_output_vjps``.

        ``cts``: one cotangent for each of the user's results that requires grad, None for zero. A
        zero cotangent is returned as an array of zeros, or as None if the input's type is unknown.
        """
        # the other positions are temporaries [semantics.md D4]
        real = [i for i in self.df_input_vjps if i < self.f_real_outputs]
        if len(cts) != len(real):
            raise ShapeError(
                f"backward: {len(real)} results require grad, found {len(cts)} cotangents\n"
                "  pass one cotangent for each of these results, in order"
            )
        missing = [Undef] * (len(self.df_input_vjps) - len(real))
        args = [*(Undef if ct is None else ct for ct in cts), *missing, *residuals]
        # residuals may be the only arrays, if all cotangents are None
        xp = array_module(arg for arg in args if arg is not Undef)
        cotangents = evaluator_of(args).call(self.df, args)
        return tuple(
            zeros_for(self.f.params[i], ct, xp)
            for i, ct in zip(self.df_output_vjps, cotangents, strict=True)
        )

    @paused_gc()
    def joined(self) -> Lambda:
        """One program: (arguments of ``f``, cotangents) -> (results, cotangents of the arguments).

        The cotangents, one for each of the user's results that requires grad, are further
        positional arguments; the returned ones are a tuple in the order of ``df_output_vjps``.
        Transforms of a Gradient, such as ``vmap(gradient)``, use this program.

        >>> import numpy as np
        >>> from letir import differentiate, trace
        >>> g = differentiate(trace(lambda x: x * x, 3.0))
        >>> g.joined()(3.0, np.float64(1.0))
        (9.0, (np.float64(6.0),))
        """
        f, df = self.f, self.df
        builder = LetBuilder()
        builder.binds = list(f.binds)
        vjps = df.params[: len(self.df_input_vjps)]
        # the cotangents of temporaries are undefined: callers have none
        names: dict[Local, Arg] = dict.fromkeys(vjps, UNDEFINED)
        cts = vjps[: sum(i < self.f_real_outputs for i in self.df_input_vjps)]  # positions increase
        cotangent_params = {param: Local(param.type, param.name) for param in cts}
        names |= cotangent_params
        # in one program, the captured parameters of df become the locals of f
        captured: list[Arg] = [f.params[i] for i in self.df_input_captured_inputs]
        captured += [f.ret.args[i] for i in self.df_input_captured_outputs]
        names |= zip(df.params[len(vjps) :], captured, strict=True)
        undefined = {param: False for param in vjps if names[param] is UNDEFINED}
        results = Specializer(builder, names, undefined).run(df)
        inputs = [f.params[i] for i in self.df_output_vjps]
        results = [
            zeros_of_type(builder, p) if a is UNDEFINED else a
            for p, a in zip(inputs, results, strict=True)
        ]
        in_tree, out_tree, positional = self._joined_trees(len(cts))
        builder.params = [
            *f.params[:positional],
            *cotangent_params.values(),
            *f.params[positional:],
        ]
        return builder.build([*f.ret.args[: self.f_real_outputs], *results], in_tree, out_tree)

    def _joined_trees(self, n_cts: int) -> tuple[Tree, Tree, int]:
        """(tree of the arguments of ``joined``, tree of its results, number of parameters of ``f``
        before the cotangents).
        """
        f, real = self.f, self.f_real_outputs
        args, kwargs = ((LEAF,) * len(f.params), {}) if f.in_tree is None else f.in_tree.example()
        out = LEAF if real == 1 else (LEAF,) * real
        out = out if self.out_tree is None else self.out_tree.example()
        arguments = (LEAF,) * len(self.df_output_vjps)
        trees = (
            Tree.from_pytree(((*args, *[LEAF] * n_cts), kwargs)),
            Tree.from_pytree((out, arguments)),
        )
        return *trees, Tree.from_pytree(args).arrays

    def df_text(self) -> str:
        """``df`` as text, with the role of each parameter."""
        numbers = number_locals(self.f)
        definitions = {binder: bind for bind in self.f.binds for binder in bind.binders}
        roles = [
            f"vjp of {_describe_value(self.f.ret.args[i], numbers, definitions)}"
            for i in self.df_input_vjps
        ]
        roles += [
            _describe_value(self.f.params[i], numbers, definitions)
            for i in self.df_input_captured_inputs
        ]
        roles += [
            _describe_value(self.f.ret.args[i], numbers, definitions)
            for i in self.df_input_captured_outputs
        ]
        return LATE_BOUND["untyped_text"](self.df, "df", roles)

    def __str__(self):
        left, right = self.f.listing().splitlines(), self.df_text().splitlines()
        width = max(map(len, left), default=0)
        rows = max(len(left), len(right))
        left += [""] * (rows - len(left))
        right += [""] * (rows - len(right))
        return "\n".join(f"{a:<{width}} | {b}".rstrip() for a, b in zip(left, right, strict=True))

    __repr__ = __str__

    def _repr_html_(self):
        return LATE_BOUND["gradient_html"](self)

    def _repr_pretty_(self, printer, cycle):
        LATE_BOUND["pretty_program"](self, printer, cycle)

    def with_df(self, df: Lambda) -> "Gradient":
        """This Gradient with another gradient program, of the same parameters and results."""
        return evolve(self, df=df)


def zeros_for(param: Local, ct: Any, xp: Any) -> Any:
    """``ct`` if it is defined, else zeros of the type of ``param``; None if that is unknown."""
    if ct is not Undef:
        return ct
    aval = param.type
    return None if not has_static_shape(aval) else xp.zeros(aval.shape, aval.dtype)


def number_locals(fn: Lambda) -> dict[Local, str]:
    """The locals of ``fn`` with their numbers in its text, such as %3."""
    locals_ = [*fn.params, *(binder for bind in fn.binds for binder in bind.binders)]
    return {local: f"%{i}" for i, local in enumerate(locals_)}


def _describe_value(arg: Arg, numbers: dict[Local, str], definitions: dict[Local, Bind]) -> str:
    """A short text for a value: its name, a simple expression for it, or its number."""
    if type(arg) is not Local:
        return repr(arg)
    if arg.name:
        return arg.name
    bind = definitions.get(arg)
    symbol = bind.op.symbol if bind else None
    # a*b as in D5 of semantics.md; nested expressions get their number
    if symbol and len(bind.args) == 2 and all(type(a) is not Local or a.name for a in bind.args):
        x, y = (a.name if type(a) is Local else repr(a) for a in bind.args)
        return f"{x}{symbol}{y}"
    return numbers[arg]
