"""``differentiate``: the reverse transform of a program, as a ``Gradient``.

``Reverse`` and ``Direct`` emit the gradient program; here the primal values that it reads become
its parameters and further results of the primal program. grad, vjp and the others use this.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter

from letir import passes
from letir.ad.gradient_program import Captures, Gradient, Policy
from letir.ad.loop_residuals import LoopResiduals
from letir.ad.reverse import Direct, Reverse
from letir.ad.symbolic_zeros import UNDEFINED
from letir.ast import LATE_BOUND, entry_point
from letir.ast.builder import LetBuilder
from letir.ast.derivative_types import carries_derivative, strong_type
from letir.ast.process_state import paused_gc
from letir.ast.source import with_errors_of_check
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.errors import DTypeError, ShapeError

_op_of, _role_of, _may_update = map(attrgetter, ("op", "op.role", "op.update"))
_is_extremum = attrgetter("op.is_extremum")


@entry_point
def differentiate(
    f: Lambda,
    requires_grad: Sequence[bool] | None = None,
    *,
    defined: Sequence[bool] | None = None,
    policy: Policy = "keep_all",
    exact: bool = False,
) -> Gradient:
    """The gradient program of ``f`` with respect to the parameters where ``requires_grad`` is True.

    By default these are all floating ones. ``defined``: which results have a cotangent, if that is
    known; then ``df`` takes only these cotangents, no cotangents of temporaries, and has no
    ``grad_of``. ``policy`` and ``exact`` choose the residuals (``letir.ad.remat.policies``). Linear
    in the number of binds. Raises MissingRule with the user's line if an operation has no rule yet.

    >>> from letir.ast.text.parser import parse
    >>> text = "lambda %0:a: float64[], %1:b: float64[] { %2: float64[] = mul(%0, %1); return %2 }"
    >>> f = parse(text)
    >>> print(differentiate(f).df_text(), end="")
    df(%0 vjp of a*b, %1 a, %2 b):
      %3, %4 = grad_of[mul](%0) { %5 = mul(%0, %2); %6 = mul(%0, %1) -> (%5, %6) }
      return (%3, %4)
    """
    if not isinstance(f, Lambda):
        raise LATE_BOUND["not_a_program_error"]("differentiate", f)
    return differentiate_lowered(
        passes.lower_for_derivatives(f), requires_grad, defined=defined, policy=policy, exact=exact
    )


@with_errors_of_check
def differentiate_lowered(
    f: Lambda,
    requires_grad: Sequence[bool] | None = None,
    *,
    defined: Sequence[bool] | None = None,
    policy: Policy = "keep_all",
    exact: bool = False,
) -> Gradient:
    """``differentiate`` for a program that ``passes.lower_for_derivatives`` has returned."""
    redifferentiate = backward_recorder(f, requires_grad, defined)
    gradient = redifferentiate()
    if policy == "keep_all" and not exact:
        return gradient
    return LATE_BOUND["with_policy"](gradient, policy, exact=exact, redifferentiate=redifferentiate)


def backward_recorder(
    f: Lambda,
    requires_grad: Sequence[bool] | None,
    defined: Sequence[bool] | None,
    *,
    fixed_shapes: bool = False,
) -> Callable[..., Gradient]:
    """A function that differentiates ``f``; its argument: the locals to be captured as temporaries.

    ``fixed_shapes``: loops return their residuals only if the shapes do not depend on values.
    """
    if requires_grad is None:
        requires_grad = [True] * len(f.params)
    for name, flags in (("requires_grad", requires_grad), ("defined", defined or ())):
        if isinstance(flags, str) or not hasattr(flags, "__len__"):
            raise DTypeError(
                f"differentiate: {name} is a list of flags, found {flags!r}\n"
                "  pass True or False for each of them, in order"
            )
    if len(requires_grad) != len(f.params):
        raise ShapeError(
            f"differentiate: {len(f.params)} parameters, {len(requires_grad)} flags "
            "in requires_grad\n  pass one flag for each array that the program takes"
        )
    if defined is not None and len(defined) != len(f.ret.args):
        raise ShapeError(
            f"differentiate: {len(f.ret.args)} results, {len(defined)} flags in defined\n"
            "  pass one flag for each array that the program returns"
        )
    pairs = zip(f.params, requires_grad, strict=True)
    inputs = [i for i, (p, flag) in enumerate(pairs) if flag and carries_derivative(p)]
    loops = LoopResiduals(fixed_shapes=fixed_shapes)  # shared by all runs, to get the same binders

    def recorded(temporaries: Sequence[Local] = ()) -> Gradient:
        return _Recording(f, defined, loops, temporaries).gradient(inputs)

    return recorded


class _Recording:
    """The state of one ``differentiate``: builder, captures, vjp parameters by result position.

    ``temporaries``: locals that are captured even if no rule reads them.
    """

    def __init__(
        self,
        f: Lambda,
        defined: Sequence[bool] | None,
        loops: LoopResiduals,
        temporaries: Sequence[Local],
    ):
        self.f, self.defined, self.builder = f, defined, LetBuilder()
        self.loops, self.temporaries = loops, temporaries
        self.captures = Captures(f)
        self.tape: list[Bind] = []  # the binds through which a derivative flows
        self.vjps: dict[int, Local] = {}  # of results and temporaries, by position
        self.residual_cotangents: dict[Local, Local] = {}  # temporary -> its vjp parameter
        if defined is None:
            self.reverse = Reverse(
                self.builder, self.capture, self.residual_cotangents.get, loops.with_residuals
            )
        else:
            capture = self.captures.capture
            self.reverse = Direct(
                self.builder, capture, self.residual_cotangents.get, loops.with_residuals
            )

    def seeds(self, ret: Ret):
        """(result, vjp parameter) for each result that requires grad and may have a cotangent.

        There is one parameter for each position, even if a value is returned twice
        [semantics.md D2].
        """
        if self.defined is not None and any(map(_is_extremum, self.tape)):
            needed = self.reverse.needed
            self.tape[:] = LATE_BOUND["without_canceling_maxima"](self.f, self.tape, needed)
        for position, arg in enumerate(ret.args):
            if arg in self.reverse.needed and (self.defined is None or self.defined[position]):
                self.vjps[position] = Local(strong_type(arg.type))
                yield arg, self.vjps[position]
        for local in self.temporaries:
            self.capture(local)

    def capture(self, local: Local) -> Local:
        """Capture ``local``; a new temporary that requires grad gets a vjp parameter."""
        count = len(self.captures.results)
        self.captures.capture(local)
        if len(self.captures.results) > count and local in self.reverse.needed:
            self.vjps[count] = self.residual_cotangents[local] = Local(strong_type(local.type))
        return local

    @paused_gc()
    def gradient(self, inputs: list[int]) -> Gradient:
        """The Gradient with respect to the parameters at the positions ``inputs``."""
        f, captures = self.f, self.captures
        params = {f.params[i] for i in inputs}
        cotangents = self.reverse.visit(f.body, params, self.tape, self.seeds)
        self.builder.params = [*self.vjps.values(), *captures.params()]
        df = self.builder.build([cotangents.get(f.params[i], UNDEFINED) for i in inputs])
        if self.defined is not None:  # the form with grad_of is specified by D5 in semantics.md
            # sums are merged first: sinking negations turns some of them into differences
            df = passes.combine_sums(df) if self.reverse.sum in map(_op_of, df.binds) else df
            df = passes.sink_negations(df) if "negation" in map(_role_of, df.binds) else df
        primal = captures.primal()
        primal = self.loops.primal(primal) if self.loops.replaced else primal
        if any(map(_may_update, primal.binds)):
            # a captured view of a buffer would forbid later updates of the buffer in place
            primal = passes.copy_outliving_views(primal)
        return Gradient(
            f=primal,
            df=df,
            f_real_outputs=len(f.ret.args),
            df_input_vjps=tuple(self.vjps),
            df_input_captured_inputs=tuple(sorted(captures.inputs)),
            df_input_captured_outputs=tuple(sorted(captures.outputs)),
            df_output_vjps=tuple(inputs),
            out_tree=f.out_tree,
        )
