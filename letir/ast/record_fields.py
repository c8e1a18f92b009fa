"""Values of fields of ``Primitive``: absent rules, Python's operators, and the layout of bodies.

``BodyLayout`` says how an operation uses the bodies among its attributes. Each record states it
once (``Primitive.bodies``); dead-code elimination, activity, linearity, loop-invariant code motion,
unrolling and inlining read it, so that they need not name operations.
"""

from collections.abc import Callable
from typing import Any, TypeGuard

from attrs import frozen

from letir.ast import LATE_BOUND
from letir.errors import DTypeError

# ---- absent rules ----


@frozen
class Absent:
    """A missing rule, and why it is missing. ``final``: it cannot exist.

    >>> from letir.extend import PRIMITIVES
    >>> PRIMITIVES["argmax"].vjp.reason
    'the result is not floating, so there is nothing to differentiate'
    """

    reason: str
    final: bool


def never(reason: str) -> Absent:
    """A rule that cannot exist, because of ``reason``.

    >>> never("integer result")
    Absent(reason='integer result', final=True)
    """
    if type(reason) is not str:
        raise _reason_error("never", reason)
    return Absent(reason, final=True)


def todo(reason: str) -> Absent:
    """A rule that is not written yet, because of ``reason``.

    >>> todo("complex operands")
    Absent(reason='complex operands', final=False)
    """
    if type(reason) is not str:
        raise _reason_error("todo", reason)
    return Absent(reason, final=False)


def _reason_error(maker: str, reason: Any) -> DTypeError:
    """The error for a reason that errors cannot show."""
    return DTypeError(
        f"{maker}: the reason why a rule is missing must be a string, found {reason!r}\n"
        f"  write {maker}('it has jumps'); errors show this text"
    )


NO_BATCH = todo("the operation was defined without one")


def is_final(rule: Any) -> TypeGuard[Absent]:
    """Whether a rule is absent and cannot exist."""
    return type(rule) is Absent and rule.final


class SeveralBinds(Exception):
    """Raised by the ``prepare`` of a record for a call that takes more than one bind.

    ``results``: a function without arguments that records them and returns the call's results.
    """

    def __init__(self, results: Callable[[], Any]):
        super().__init__("a call that takes several binds")
        self.results = results


# ---- Python's operators ----


@frozen
class PythonOperator:
    """The differences of a Python operator from the operation that records it.

    ``kinds`` are the names of the operands' Python types, "int", "float" or "complex"; a boolean
    counts as an int. ``y`` is the second operand.
    """

    symbol: str | None = None  # such as "+"; None: it does not stand between two operands
    # the function of Python with which scripts compute it if all operands are Python numbers; None:
    # NumPy computes it
    of_numbers: Callable | None = None
    # max_bits(x, y): no fewer bits than the result of two integers has; None: not many more bits
    # than the operands have
    max_bits: Callable | None = None
    counts_booleans: bool = False  # Python's booleans are the integers 0 and 1
    takes_complex: bool = False  # Python's complex numbers have it
    orders_numbers: bool = False  # as ``<``, which Python's complex numbers refuse
    takes_all: bool = False  # as ``==``, which objects of all types have
    is_sum: bool = False  # ``+`` and ``-``: the result differs from one operand by the other
    repeats_sequences: bool = False  # as ``*``, by which an integer repeats a list
    # differs(y, kinds): whether it may raise, or give another type or number than NumPy, for real
    # numbers whose second one is known; None: it is NumPy's
    differs: Callable | None = None
    # result_kind(y, kinds): the kind of the result for real numbers, or None if the values decide;
    # ``y`` is None if it is not known. The default is a float if one operand is, else an int
    result_kind: Callable | None = None
    # the kinds of dtypes, "f" and "c", for which Python and NumPy's scalars may round the last bit
    # of the result in another way than a ufunc, which has instructions of its own for arrays
    rounds_scalars: str = ""

    @property
    def compares(self) -> bool:
        """Whether it compares numbers."""
        return self.orders_numbers or self.takes_all


NO_OPERATOR = PythonOperator()


class RecordSignature:
    """``__signature__`` of each record: how users call the operation."""

    def __get__(self, record: Any, owner: type) -> Any:
        if record is None:
            raise AttributeError("inspect reads the signature of the class from __init__")
        return LATE_BOUND["record_signature"](record)


# ---- products ----

# the values of ``Primitive.product`` for convolutions, and for their derivatives
PRODUCTS_OF_WINDOWS = ("windows", "transposed windows", "weights of windows")


# ---- bodies ----


def _none(bind) -> int:
    return 0


def _nothing(bind) -> tuple:
    return ()


def _no_counts(bind, results, params) -> dict:
    """The attributes that a change of the results alters, if none counts them."""
    return {}


@frozen
class BodyLayout:
    """How an operation's operands and results map to its bodies' parameters and results.

    The parameters of a body are ``steps`` further values, then the operands from position ``ahead``
    on. A loop's operands are: those ahead, the initial carry, the arrays of elements, captured
    values.
    """

    ahead: int = 0  # leading operands that no body takes: a condition, the bounds of a loop
    steps: int = 0  # leading parameters that are not operands: the iteration number

    # None: not a loop, one body runs at most once. In loops the last body runs in each iteration,
    # over "numbers": between the two operands ahead; "test": while the body before it returns True;
    # "elements": of arrays along axis 0; "pairs": of elements or results, in an unspecified order.
    loop: str | None = None
    n_carry: Callable = _none  # n_carry(bind): the number of carried values, the first results
    n_elements: Callable = _none  # n_elements(bind): the number of arrays that a loop iterates over
    own: Callable = _none  # own(bind): the number of results, after the carry, that no body returns
    # reads_results(bind): positions of the results of the last body that the operation itself reads
    reads_results: Callable = _nothing
    # the number of iterations, or sizes of results, depend on types of operands that no body reads
    needs_sizes: bool = False
    # given_types(types, attrs): the parameter types of a body, if they differ from the operands'
    given_types: Callable | None = None

    # all other results are results of each body, in the same order; dead ones can be removed,
    # together with the operands that only they depend on
    is_separable: bool = True
    # counts(bind, results, params): the new values of attributes that count results or operands,
    # if only the results and parameters at these positions are kept
    counts: Callable = _no_counts
    runs_first: bool = False  # only the first body computes results, others are derivative rules
    is_linear: bool = True  # linear in an operand if the bodies are linear in it

    # in_place(bind, number): (body, operands) to inline in place of the bind, or None if unknown;
    # number(arg) is the value of a constant operand, else None
    in_place: Callable | None = None
    is_for_derivatives: bool = False  # inlined only where no derivative is taken any more
