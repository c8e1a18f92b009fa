"""``verify``: a comparison of a function or a recorded model with its own recording."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from letir.ast import entry_point
from letir.ast.attrs import same_bits
from letir.ast.process_state import float_errors
from letir.ast.pytrees import flatten
from letir.ast.terms import Lambda
from letir.eager.models.recorded_model import RecordedModel
from letir.eager.variable import Variable
from letir.errors import LetirError, TraceError
from letir.eval.arguments import mark_static
from letir.eval.array_modules import type_of
from letir.source.side_by_side.comparison import diff
from letir.tracing.entry import record
from letir.tracing.trace_state import EAGER


@entry_point
def verify(f: Callable, *args: Any, check_inputs: Sequence = (), **kwargs: Any) -> Lambda:
    """The program of ``f`` at these arguments, if its replay equals ``f`` bit for bit.

    ``f``: a function, or a result of ``jit_model``. ``check_inputs``: other arguments at which the
    program, recorded at ``args``, must equal ``f`` too, each a tuple of positional arguments. The
    function is recorded twice and called once, each time
    with its own copy of the arguments (and of the model) and the same state of ``np.random``.
    Raises TraceError that names the first different result and shows how the two recordings differ:
    through hidden state that a program cannot see, such as a counter, a file or the clock.

    >>> import numpy as np
    >>> print(verify(lambda x: np.tanh(x) * 2, np.ones(3)).listing(), end="")
    %1 = tanh %0
    %2 = mul %1, 2
    return %2
    """
    recorded = _replay_model if isinstance(f, RecordedModel) else _replay_program
    # recorded twice: hidden state that the function reads makes the two programs differ
    (first, actual), (second, _) = (_call_on_copies(recorded, f, args, kwargs) for _ in range(2))
    expected = _call_on_copies(_plain_call, f, args, kwargs)
    differences = _difference_lines(expected, actual)
    if not differences and first == second:
        for i, other in enumerate(check_inputs):
            inputs = tuple(other) if isinstance(other, tuple | list) else (other,)
            _check_at(f, first, f"check_inputs[{i}]", inputs, kwargs)
        return first
    programs = (
        f"two recordings of the function differ:\n{diff(first, second)}"
        if first != second
        else "both recordings are the same: the function computes with values that no operation "
        "on its arguments gives"
    )
    raise TraceError(
        "\n  ".join(["verify: the program is not the function", *differences, programs])
    )


def _check_at(f: Callable, program: Lambda, name: str, args: tuple, kwargs: dict) -> None:
    """Raise TraceError unless the program equals ``f`` at other arguments."""

    def replay(f: Callable, args: tuple, kwargs: dict) -> list:
        return _result_arrays(program(*args, **kwargs))

    of_model = isinstance(f, RecordedModel)
    try:
        actual = _call_on_copies(_call_recorded if of_model else replay, f, args, kwargs)
    except LetirError as error:
        differences = [f"{type(error).__name__}: {line}" for line in str(error).splitlines()[:1]]
    else:
        differences = _difference_lines(_call_on_copies(_plain_call, f, args, kwargs), actual)
    if differences:
        lines = [f"verify: at {name} the program is not the function", *differences]
        raise TraceError("\n  ".join(lines))


def _call_recorded(model: RecordedModel, args: tuple, kwargs: dict) -> list:
    """The results of a recorded model."""
    return _result_arrays(model(*args, **kwargs))


def _call_on_copies(call: Callable, f: Callable, args: tuple, kwargs: dict):
    """``call(f, args, kwargs)`` on copies; NumPy's global random state is restored afterwards."""
    # NumPy's global state: recording and calling must draw the same numbers
    state = np.random.get_state()
    model = RecordedModel(copy.deepcopy(f.model)) if isinstance(f, RecordedModel) else f
    try:
        return call(model, *copy.deepcopy((args, kwargs)))
    finally:
        np.random.set_state(state)


def _plain_call(f: Callable, args: tuple, kwargs: dict) -> list:
    """The results of ``f`` itself."""
    function = f.model.forward if isinstance(f, RecordedModel) else f
    return _result_arrays(function(*args, **kwargs))


def _replay_program(f: Callable, args: tuple, kwargs: dict) -> tuple[Lambda, list]:
    """(program of a function, its results)."""
    fn = record(f, *mark_static(f, args, kwargs, (), ()), EAGER).fn
    return fn, _result_arrays(fn(*args, **kwargs))


def _replay_model(model: RecordedModel, args: tuple, kwargs: dict) -> tuple[Lambda, list]:
    """(program of a model, its results)."""
    out = model(*args, **kwargs)
    return model.programs[0], _result_arrays(out)


def _result_arrays(results) -> list:
    """The leaves of nested results, with the arrays of Variables."""
    return [leaf.array if isinstance(leaf, Variable) else leaf for leaf in flatten(results)[0]]


def _difference_lines(expected: list, actual: list) -> list[str]:
    """The differences between results, a line for each."""
    if len(expected) != len(actual):
        return [f"the function gives {len(expected)} results, the program {len(actual)}"]
    pairs = enumerate(zip(expected, actual, strict=True))
    return [_difference_line(i, *pair) for i, pair in pairs if not _same_bits(*pair)]


def _same_bits(expected, actual) -> bool:
    """Whether two results have the same type and bits; all nans are equal."""
    if type_of(expected) != type_of(actual):
        return False
    return same_bits(_unify_nans(expected), _unify_nans(actual))


def _unify_nans(array) -> np.ndarray:
    """A flat copy in which every nan has the same bits."""
    flat = np.array(array).reshape(-1)  # a copy: nans are overwritten below
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    if flat.dtype.kind == "f":
        flat[np.isnan(flat)] = np.nan
    return flat


def _difference_line(i: int, expected, actual) -> str:
    """A line that says how a result differs."""
    if type_of(expected) != type_of(actual):
        return f"result {i}: the function gives {type_of(expected)}, the program {type_of(actual)}"
    with float_errors(all="ignore"):
        deviation = np.max(np.abs(np.subtract(expected, actual, dtype=complex)), initial=0.0)
    return f"result {i}, {type_of(expected)}: the largest difference is {deviation:.3g}"
