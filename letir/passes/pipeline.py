"""Pipelines: tuples of passes that run in sequence, and passes registered by users.

With ``LETIR_DUMP=folder`` in the environment every pass writes its input and its output there; with
``LETIR_CHECK=1`` the program that each pass returns is checked.
"""

import functools
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import frozen

from letir.ast import LATE_BOUND, WATCHED, entry_point, with_progress_bar
from letir.ast.process_state import new_lock
from letir.ast.terms import Lambda
from letir.errors import LetirError

_Pass = Callable[[Lambda], Lambda]
Pipeline = tuple[_Pass, ...]

_POINTS = ("before", "gradient", "after")
_registered: dict[str, tuple["_Registered", ...]] = dict.fromkeys(_POINTS, ())
_lock = new_lock()
_numbers = itertools.count(1)  # numbers the files in the folder


@with_progress_bar("running passes")
def run_pipeline(pipeline: Pipeline, fn: Lambda, *, observe: Callable | None = None) -> Lambda:
    """``fn`` after all passes of ``pipeline`` in order.

    ``observe(name, before, after, seconds)`` is called after each; ``after is before`` if a pass
    changed nothing.

    >>> from letir.ast.text.parser import parse
    >>> from letir.passes import dead_code
    >>> f = parse("lambda %0 { %1 = exp(%0); %2 = neg(%0); return %2 }")
    >>> found = run_pipeline((dead_code,), f, observe=lambda name, f, g, s: print(len(f), len(g)))
    2 1
    """
    folder, checks = os.environ.get("LETIR_DUMP"), os.environ.get("LETIR_CHECK", "0") != "0"
    for pass_ in LATE_BOUND["count_items"](pipeline) if WATCHED else pipeline:
        begin = time.perf_counter()
        try:
            after = pass_(fn)
            seconds = time.perf_counter() - begin
            if checks or type(after) is not Lambda:
                _check_result(pass_, fn, after)
        except Exception as error:
            error.add_note(f"letir: in the pass {_pass_name(pass_)}")
            raise
        if folder:
            _dump_texts(folder, _pass_name(pass_), fn, after)
        if observe is not None:
            observe(_pass_name(pass_), fn, after, seconds)
        fn = after
    return fn


def _check_result(pass_: _Pass, before: Lambda, after: Any) -> None:
    """Raise unless the result of a pass is a program with the same parameters and results."""
    if type(after) is not Lambda:
        raise LetirError(
            f"the pass {_pass_name(pass_)} gave {type(after).__name__}\n"
            "  a pass returns a Lambda: its argument if it changes nothing"
        )
    if after is before:
        return
    LATE_BOUND["check"](after)
    if _type_signature(after) != _type_signature(before):
        raise LetirError(
            f"the pass {_pass_name(pass_)} gave a program with other parameters or results\n"
            f"  it got {_type_signature(before)}\n  it gave {_type_signature(after)}\n"
            "  a pass keeps what a program takes and returns: see docs/passes.md"
        )


def _pass_name(pass_: _Pass) -> str:
    """The name of a pass: the name of its function, with the options of a partial."""
    if isinstance(pass_, functools.partial):
        options = ", ".join(f"{name}={value!r}" for name, value in pass_.keywords.items())
        return f"{_pass_name(pass_.func)}({options})"
    return getattr(pass_, "__name__", None) or type(pass_).__name__


def _dump_texts(folder: str, name: str, before: Lambda, after: Lambda) -> None:
    """Write the input and output of a pass, in the form that ``parse`` reads."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    word = name.partition("(")[0]
    # processes may share the folder; the numbers follow the order of the passes
    stem = f"{os.getpid()}-{next(_numbers):05}-{word if word.isidentifier() else 'pass'}"
    for end, fn in (("in", before), ("out", after)):
        head = f"# {name}, {end}put: {len(fn)} binds\n".replace("\r", " ")
        text = head + LATE_BOUND["dumps"](fn) + "\n"
        (path / f"{stem}-{end}.txt").write_bytes(text.encode("utf-8", "surrogatepass"))


@frozen
class _Registered:
    """A user's pass, with its result checked."""

    pass_: _Pass

    @property
    def __name__(self) -> str:
        return _pass_name(self.pass_)

    def __call__(self, fn: Lambda) -> Lambda:
        result = self.pass_(fn)
        _check_result(self.pass_, fn, result)
        return result


def _type_signature(fn: Lambda) -> tuple:
    """The types of the parameters, and the number of results."""
    return tuple([param.type for param in fn.params]), len(fn.ret.args)


@entry_point
def register(point: str, pass_: _Pass) -> _Pass:
    """Register a pass that ``jit`` and ``compile`` run, and return it.

    ``point``: "before" all other passes on the whole program, "gradient" on each part that will be
    differentiated, or "after" on the final program of a plan. Each result is checked. A pass
    replaces one with the same name and module, for example when a notebook cell runs again. Plans
    compiled earlier do not change: see ``clear`` of a jitted function.

    >>> from letir.passes import dead_code
    >>> register("after", dead_code) is dead_code
    True
    >>> unregister("after", dead_code)
    """
    if point not in _POINTS:
        raise LetirError(
            f"register: there is no point {point!r}, expected one of {_POINTS}\n  name one of them"
        )
    if not callable(pass_):
        raise LetirError(
            f"register: a pass must be a function from a Lambda to a Lambda, found {pass_!r}\n"
            "  pass the function itself"
        )
    with _lock:
        others = [r for r in _registered[point] if not _is_same_pass(r.pass_, pass_)]
        _registered[point] = (*others, _Registered(pass_))
    return pass_


@entry_point
def unregister(point: str, pass_: _Pass) -> None:
    """Undo ``register(point, pass_)``; does nothing if it is not registered there.

    >>> from letir.passes import dead_code
    >>> _ = register("before", dead_code)
    >>> unregister("before", dead_code)
    >>> registered_passes("before")
    ()
    """
    with _lock:
        _registered[point] = tuple(
            [r for r in _registered[point] if not _is_same_pass(r.pass_, pass_)]
        )


def registered_passes(point: str) -> Pipeline:
    """The registered passes at a point, in order of registration."""
    return _registered[point]


def _is_same_pass(one: _Pass, other: _Pass) -> bool:
    """Whether two passes are identical, or one is a redefinition of the other."""
    if one is other:
        return True
    places = [
        (getattr(p, "__module__", None), getattr(p, "__qualname__", None)) for p in (one, other)
    ]
    return None not in places[0] and places[0] == places[1]
