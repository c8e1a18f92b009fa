"""``BodyLayout``: how an operation uses the bodies among its attributes.

Each record states it once (``Primitive.bodies``); dead-code elimination, activity, linearity,
loop-invariant code motion, unrolling and inlining read it, so that they need not name operations.
"""

from collections.abc import Callable

from attrs import frozen


def _none(bind) -> int:
    return 0


def _nothing(bind) -> tuple:
    return ()


def _no_counts(bind, results, params) -> dict:
    return {}


@frozen
class BodyLayout:
    """How operands and results of an operation correspond to parameters and results of its bodies.

    A body takes ``steps`` parameters of its own, then the operands from ``ahead`` on. Of a loop
    the operands are: those ahead, the carried values, the arrays of elements, captured values.
    """

    ahead: int = 0  # the first operands, which no body takes: a condition, the bounds of a loop
    steps: int = 0  # the first parameters, which are not operands: the number of the step

    # None: one body runs, at most once. Otherwise the last body runs in every step: "numbers"
    # between the two operands ahead; "test", while the body before it returns True; "elements" of
    # arrays along their first axis; "pairs" of elements or results, in an order of its own.
    loop: str | None = None
    n_carry: Callable = _none  # n_carry(bind) counts carried values, which are the first results
    n_elements: Callable = _none  # n_elements(bind) counts the arrays that a loop goes over
    own: Callable = _none  # own(bind) counts results after the carried ones that no body gives
    # reads_results(bind): the places of those results of the last body that the operation reads
    reads_results: Callable = _nothing
    # types of arrays tell the number of steps, or sizes of results, even if no body reads them
    needs_sizes: bool = False
    # given_types(types, attrs) are the types that a body gets, where they are not the operands'
    given_types: Callable | None = None

    # All other results are those of each body, in their order, and those that are not needed can
    # be left out, with the operands that only they need.
    is_separable: bool = True
    # counts(bind, results, params): the attributes that count results or operands, where only these
    # results and parameters, given by their positions, are kept
    counts: Callable = _no_counts
    runs_first: bool = False  # only the first body computes results, others are for derivatives
    is_linear: bool = True  # linear in those operands in which the bodies are

    # in_place(bind, number) gives (body, its operands) that can stand in the place of the bind, or
    # None if that is not known; number(arg) is the value of an operand that is a constant, or None
    in_place: Callable | None = None
    is_for_derivatives: bool = False  # only the derivative rule keeps the body from being put there
