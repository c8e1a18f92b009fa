"""``Trace``: a program builder that is driven by running Python code; the active trace per thread.

For an operation on traced values the active trace converts the operands into arguments (a value of
an enclosing trace becomes a parameter, an array a constant), emits the bind with the user's line,
and computes it in a concrete trace.
"""

import math
import operator
import threading
import warnings
import weakref
from collections.abc import Iterable
from contextvars import ContextVar
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import NO_ATTRS, Attrs, freeze, same_bits
from letir.ast.builder import LetBuilder, Value, known_types
from letir.ast.liveness import may_raise
from letir.ast.primitive import Primitive, result_count, results_tuple
from letir.ast.process_state import restore_abandoned
from letir.ast.sizes.size_reads import SIZE_READS
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.ast.types import PYTHON_NUMBERS, ArrayType, ShapeDtype, Size, UndefType
from letir.errors import DTypeError, LetirError, notify_watchers
from letir.eval.array_modules import NDARRAY, device_array_class, is_array, value_on_host
from letir.eval.evaluator import compute
from letir.eval.float_warnings import (
    ERROR_STATE,
    LOUD,
    SETTING_FILES,
    current_state,
    is_silent,
    warnings_shown_by,
)
from letir.ops.autodiff.checkpoint_and_custom_jvp import attrs_without_effects
from letir.ops.effects.writes_to_arguments import changed_params
from letir.tracing.mutation.mutated_arguments import ChangesArguments
from letir.tracing.mutation.views import is_read_number, note_view
from letir.tracing.operands import (
    array_of_operand,
    captured_array,
    check_array_type,
    operand_error,
    refuse_long_integer,
    stack_traced,
    value_of_operand,
)
from letir.tracing.source_locations import error_at_user_line, user_place

if TYPE_CHECKING:
    from letir.tracing.tracer import Tracer

_type_of = operator.attrgetter("type")
_ORDINARY = frozenset([np.ndarray, np.float64, np.int64, *PYTHON_NUMBERS])


class _NoValue:
    """The class of ``ABSENT``, which marks a traced value without a concrete value."""

    def __repr__(self):
        return "ABSENT"


ABSENT = _NoValue()
EAGER, LAZY, ABSTRACT = "eager", "lazy", "abstract"  # computes immediately, on demand, or never
# draws of generators, see random_draws
REFUSE_DRAWS, DRAW_AT_ONCE, LIFT_STATES = "refused", "at once", "lifted"
SETTING_FILES.add(__file__)
# the number of binds at which a limit of the next recording is tested
TESTED_LENGTH: ContextVar[float] = ContextVar("letir_tested_length", default=math.inf)
_OF_ARGUMENTS = ("write_back", "guard_separate")  # roles of operations
NOT_COMPUTED = object()  # result of ``compute_known`` for operations that must be recorded


class Trace(ChangesArguments, LetBuilder):
    """Records one program. ``parent`` is the trace that was active when it began.

    >>> import numpy as np
    >>> from letir import tracer_enter, tracer_exit
    >>> x = tracer_enter(np.ones(2))
    >>> type(x.emitter).__name__
    'Trace'
    >>> len(tracer_exit(x + 1))
    1
    """

    # defaults, which most traces keep
    refusal: str | None = None  # the first error of this trace, in case it is caught
    refusal_marks: tuple[str, ...] = ()  # what that error tells ``jit``, see ``refusals``
    raised: tuple[Exception, ...] = ()  # errors of letir so far, see ``refusals``
    reads_errors = False  # whether the function has read the text of an error of letir
    functions: tuple[Any, ...] = ()  # among the arguments
    root: CodeType | None = None  # the code of the outermost frame that is recorded
    failed: Bind | None = None  # the bind of a lazy trace that raised when its value was demanded
    lifts_variables = watches_sizes = has_sizes = False  # has_sizes: parameters have symbolic sizes
    is_open = True
    draws = REFUSE_DRAWS
    watch: Any = None  # of draws, see random_draws

    def __init__(self, make_tracer, parent: "Trace | None", mode: str = EAGER):
        super().__init__()
        self.make_tracer, self.parent, self.mode = make_tracer, parent, mode
        self.thread = threading.get_ident()  # for messages about escaped values
        self.error_state = current_state()
        # the state to compute in, and the filters of warnings outside of the function
        self.warning_state, self.filters = LOUD[self.error_state], warnings.filters
        self.shows_warnings = warnings_shown_by()
        self.intercepts: bool = parent is None or parent.intercepts  # see ``stand_ins``
        self.has_buffers: bool = parent is not None and parent.has_buffers  # see ``buffers``
        self.lifted: dict[Any, tuple[Value, Local]] = {}  # outer local -> (value, parameter here)
        self.concrete: dict[Local, Any] = {}  # of a lazy trace: arguments, and demanded values
        self.tested_length: float = TESTED_LENGTH.get() if parent is None else math.inf
        # shared by nested traces: else a checkpoint in a loop would copy the weights at each call
        self._copies: dict[int, tuple] = {} if parent is None else parent._copies
        self._frozen: dict[int, tuple] = {}  # id of an array -> (weak reference, copy, local)

    def parameter(self, aval: ArrayType | None, name: str | None, argument: Any) -> "Tracer":
        """A traced parameter for an argument: an array, a number, a value of an outer trace, or a
        type. Values of recordings are on the host, where Python reads them.
        """
        local = self.param(aval, name).arg
        if aval is not None and Size in map(type, aval.shape):
            self.has_sizes = True
            LATE_BOUND["watch_size_reads"](self)
        self.note_argument(local, argument)
        if self.mode is LAZY:
            self.concrete[local] = argument
            return self.make_tracer(self, local, ABSENT)
        if self.mode is not EAGER or isinstance(argument, ShapeDtype):
            return self.make_tracer(self, local, ABSENT)
        argument = argument.concrete_value() if isinstance(argument, Value) else argument
        return self.make_tracer(self, local, value_on_host(argument))

    # ---- recording ----

    def apply(self, op: Primitive, operands: Iterable[Any], attrs: Attrs = NO_ATTRS) -> Any:
        """Record ``op`` on traced values, arrays and numbers, and return its traced results."""
        active = ACTIVE.get()
        if active is not self:
            return LATE_BOUND["apply_elsewhere"](self, active, op, operands, attrs)
        if self.has_buffers:
            operands = tuple(operands)
            kinds: Any = [type(operand) for operand in operands]
            if op.write_through is not None or self.make_tracer not in kinds:
                folded = LATE_BOUND["compute_known"](self, op, operands, attrs)
                if folded is not NOT_COMPUTED:
                    return folded
        shows_memory = op.write_through is not None  # a write may have to update this view
        is_usual = current_state() is self.error_state and warnings.filters is self.filters
        if not (is_usual or shows_memory or is_silent(op)):
            recorded = LATE_BOUND["record_errstate"](self, op, operands, attrs)
            if recorded is not NOT_COMPUTED:
                return recorded
        tracer = self.make_tracer
        args = tuple(
            [o.arg if type(o) is tracer and o.emitter is self else self.enter(o) for o in operands]
        )
        # 3: this frame and the next two belong to letir
        source, name = user_place(3)
        types = tuple(map(_type_of, args))
        avals = known_types((op, types) if attrs is NO_ATTRS else (op, types, attrs.token))
        if shows_memory and avals is not None and is_read_number(op, attrs, avals[0]):
            shows_memory = False
        if avals is None or op.results is not None or shows_memory:
            self.source = source
            return self._apply(op, tuple(operands), args, attrs, name)
        # the hot path, without avoidable calls: see benchmarks, rows "abstract" and "concrete"
        aval = avals[0]
        local = Local(aval, name)
        self.binds.append(Bind((local,), op, args, attrs, source))  # computed() may undo it
        if len(self.binds) > self.tested_length:
            LATE_BOUND["note_length"](self)
        value = self.computed(op, operands, attrs)[0] if self.mode is EAGER else ABSENT
        if op.raises or (aval is not None and aval.weak):
            self.note_attempt()
        return tracer(self, local, value)

    def _apply(self, op: Primitive, operands: tuple, args: tuple, attrs: Attrs, name: str | None):
        """``apply`` for new operand types, several results, or results that are views."""
        if op.role in _OF_ARGUMENTS:  # of an inlined program, whose arguments are known now
            return LATE_BOUND["inlined_effect"](self, op, operands, attrs)
        try:
            binders = self.emit(op, args, attrs)
        except LetirError as error:
            error.letir_recorded = op, operands, attrs  # type: ignore[attr-defined]  # see refusals
            if any(Size in map(type, getattr(arg.type, "shape", ())) for arg in args):
                LATE_BOUND["note_refusal"](error)  # other sizes may not raise this error
            raise
        if len(self.binds) > self.tested_length:
            LATE_BOUND["note_length"](self)
        # an operation without results has its effect in the replay, but a guard is checked now
        is_computed = self.mode is EAGER and (binders or op.role in ("guard", "guard_raised"))
        values = self.computed(op, operands, attrs) if is_computed else (ABSENT,) * len(binders)
        if op.raises or op.holds_lambdas or (binders and getattr(binders[0].type, "weak", False)):
            self.note_attempt()
        out = tuple([self.make_tracer(self, b, v) for b, v in zip(binders, values, strict=True)])
        if op.write_through is not None:
            for place, tracer in enumerate(out):
                note_view(tracer, op, operands, attrs, place)
        if op.results is not None:
            return out
        binders[0].name = name
        return out[0]

    def computed(self, op: Primitive, operands: Iterable[Any], attrs: Attrs) -> tuple:
        """The results computed from the operands' values, ABSENT if an operand has no value.

        On an exception the bind is removed again.
        """
        values, tracer = [], self.make_tracer
        for operand in operands:
            if (kind := type(operand)) is not tracer:
                values.append(operand if kind in _ORDINARY else value_of_operand(operand))
                continue
            value = (
                operand.held_value if operand.held_value is not ABSENT else operand.concrete_value()
            )
            if value is ABSENT:
                return (ABSENT,) * result_count(op, attrs)
            values.append(value)
        # prints in a body happen when the program runs
        drops_effects = op.holds_lambdas and op.role != "guard_raised"
        state, token = self.warning_state, None
        try:
            if state is not None and not is_silent(op):
                token = ERROR_STATE.set(state)
            out = compute(op, values, attrs_without_effects(attrs) if drops_effects else attrs)
        except BaseException as error:
            if op.is_user_defined and isinstance(error, LetirError):  # from a wrong aval
                error_at_user_line(error)
            LATE_BOUND["note_failure"](self, self.binds.pop(), error)
            raise
        finally:
            if token is not None:
                ERROR_STATE.reset(token)
        return results_tuple(op, out)

    def note_attempt(self) -> None:
        """Keep the last bind in replays if it may raise and the user's code may catch that."""
        bind = self.binds[-1]
        if may_raise(bind):
            LATE_BOUND["note_attempt"](self, bind)

    def value_of(self, op: Primitive, operands: tuple, attrs: Attrs) -> Any:
        """The result on the operands' values in a concrete trace, else ABSENT."""
        return self.computed(op, operands, attrs)[0] if self.mode is EAGER else ABSENT

    def enter(self, operand: Any) -> Arg:
        """``operand`` as an argument of this program.

        Values of enclosing traces are lifted into parameters, arrays are bound as constants.
        """
        if isinstance(operand, Value):
            if isinstance(operand.emitter, LetBuilder):
                return operand.arg if operand.emitter is self else self.lift(operand)
            if self.lifts_variables:
                return self.parameter_for(operand)
            return self.constant(captured_array(operand))  # a Variable of eager mode
        if is_array(operand):
            return self.constant(operand)
        kind = type(operand)
        if kind in PYTHON_NUMBERS or operand is None or kind is UndefType:
            if kind is int:
                try:
                    refuse_long_integer(operand)
                except DTypeError as error:
                    raise error_at_user_line(notify_watchers(error)) from None
            return Const(operand)
        if kind is Size:
            return operand.number().arg
        if isinstance(operand, list | tuple):
            stacked = stack_traced(operand)
            return self.enter(np.asarray(operand) if stacked is operand else stacked)
        for number in (int, float, complex):
            if issubclass(kind, number):  # for example a member of an IntEnum
                return self.enter(number(operand))
        array = array_of_operand(operand)
        if array is operand:
            raise operand_error(operand)
        return self.enter(array)

    def lift(self, outer: Value) -> Local:
        """The parameter for a traced value of an enclosing trace."""
        trace, constant = outer.emitter, outer.as_constant()
        if constant is not outer:  # a buffer: later writes in the other trace must not change it
            return self.constant(constant)
        # its local belongs to the other program: it would be free in this one
        if trace not in self.enclosing() or not trace.is_open:
            raise LATE_BOUND["escaped_error"](outer)
        return self.parameter_for(outer)

    def parameter_for(self, outer: Value) -> Local:
        """The parameter for a value from outside, created if there is none."""
        result = self.lifted.get(outer.arg)
        if result is None:
            name = getattr(outer.arg, "name", None)
            result = self.lifted[outer.arg] = (outer, self.param(outer.type, name).arg)
            self.concrete[result[1]] = outer  # a lazy trace takes the value from ``outer``
        return result[1]

    def sized_values(self) -> list[Value]:
        """The parameters of this trace and of those around it."""
        return [self.make_tracer(t, p, ABSENT) for t in (self, *self.enclosing()) for p in t.params]

    def enclosing(self) -> list["Trace"]:
        """The enclosing traces, innermost first."""
        result, trace = [], self.parent
        while trace is not None:
            result.append(trace)
            trace = trace.parent
        return result

    def constant(self, array: Any) -> Local:
        """The local of an array constant; an unchanged array is bound only once."""
        return self.frozen(array)[1]

    def frozen(self, array: Any) -> tuple[np.ndarray, Local]:
        """(read-only copy of an array constant, its local)."""
        key = id(array)
        result = self._frozen.get(key)
        if result is not None and result[0]() is array and same_bits(result[1], array):
            return result[1:]
        check_array_type(array)
        frozen = self._frozen_copy(array)
        self.source, _ = user_place(2)
        local = self.bind_constant(frozen)
        if isinstance(array, NDARRAY):
            self._frozen[key] = (weakref.ref(array), frozen, local)
        return frozen, local

    def _frozen_copy(self, array) -> np.ndarray:
        """The read-only copy of an array, shared by nested traces while the array is unchanged."""
        result = self._copies.get(id(array))
        if result is not None and result[0]() is array and same_bits(result[1], array):
            return result[1]
        frozen = freeze(value_on_host(array))
        if isinstance(array, NDARRAY):
            self._copies[id(array)] = (weakref.ref(array), frozen)
        return frozen

    def replay(self, fn: Lambda, leaves: list) -> list:
        """Record the binds of ``fn`` on traced values, arrays and numbers; returns its results."""
        is_inlined = self.mode is not EAGER and not changed_params(fn)
        if is_inlined and not any(map(may_raise, fn.binds)):
            return [self.result(r) for r in self.inline(fn, [self.enter(leaf) for leaf in leaves])]
        return LATE_BOUND["replay_each"](self, fn, leaves)

    def result(self, arg: Arg) -> Any:
        """A result of inlined code as a traced value or a number."""
        return self.make_tracer(self, arg, ABSENT) if type(arg) is Local else arg.value

    # ---- demanded values ----

    def demand(self, local: Local) -> Any:
        """The value of ``local`` in a lazy trace, computed on first demand, or ABSENT."""
        return LATE_BOUND["demanded_value"](self, local)

    def known_value(self, local: Local) -> Any:
        """The known value of a local, here or in an outer trace."""
        value = self.concrete.get(local, ABSENT)
        if isinstance(value, Value):
            value = self.concrete[local] = value.concrete_value()
        elif type(value) is device_array_class():
            value = self.concrete[local] = value_on_host(value)
        return ABSENT if isinstance(value, ShapeDtype) else value

    def close(self) -> None:
        """End the trace: nothing more can be recorded, and all values are dropped."""
        self.is_open = False
        if self.watches_sizes:
            SIZE_READS.set(None)
            self.watches_sizes = False
        # a tracer that outlives its trace, for example in a closure, must not keep arrays alive
        self.concrete, self._frozen, self._copies = {}, {}, {}
        self.forget_changes()


class Paused:
    """Replaces the active trace while tracing is paused: operations compute without recording."""

    intercepts = False

    def __init__(self, trace: Trace):
        self.trace = trace


# a ContextVar: each thread and each asyncio task has its own active trace
ACTIVE: ContextVar[Trace | Paused | None] = ContextVar("letir_active_trace", default=None)


def active_trace() -> "Trace | Paused | None":
    """The active trace of this thread, except a trace whose call was interrupted while it ended."""
    restore_abandoned()
    return ACTIVE.get()
