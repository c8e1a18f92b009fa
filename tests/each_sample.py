"""``each_sample``: a law about every sample of every operation, as one test for each operation.

A failing test names all samples that break the law, and raises their errors as one group. The
number of samples checked is a property of the report; conftest adds these up. ``in_one_test`` does
the same for any parametrized test.

LETIR_OPERATION=tanh in the environment restricts all laws over samples to the operation tanh.
"""

import functools
import inspect
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
import pytest

from letir.ast.primitive import PRIMITIVES, Primitive
from letir.testing import SAMPLES, Sample

_ONLY = os.environ.get("LETIR_OPERATION")  # all operations unless it is set
_MAX_ARGUMENT = 200  # characters of an argument in a message


def every_sample(op: Primitive, sample: Sample) -> bool:
    """True: the law applies to all samples."""
    return True


def samples_of(name: str, holds: Callable = every_sample) -> list[tuple[int, Sample]]:
    """(index, sample) for the samples of an operation that satisfy ``holds(op, sample)``."""
    op = PRIMITIVES[name]
    return [(i, sample) for i, sample in enumerate(SAMPLES[name]) if holds(op, sample)]


def described(name: str, index: int, sample: Sample) -> str:
    """A sample as a line of a message: its operation, index, operands and attributes."""
    args = [
        f"{arg.dtype}{list(arg.shape)} {np.array2string(arg, separator=', ', threshold=20)}"
        if isinstance(arg, np.ndarray)
        else repr(arg)
        for arg in sample.args
    ]
    operands = ", ".join(" ".join(arg.split())[:_MAX_ARGUMENT] for arg in args)
    return f"sample {index} of {name}: operands ({operands}), attributes {dict(sample.attrs)}"


def check_each(law: str, cases: Iterable[tuple[Callable, Callable]]) -> tuple[int, list[str]]:
    """Make each call of (call, description): (number of calls, reasons of those skipped).

    All calls are made. Raises an ExceptionGroup of the errors, each with the description of its
    call as a note.
    """
    count, skipped, errors = 0, [], []
    for call, describe in cases:
        count += 1
        try:
            call()
        except pytest.skip.Exception as skip:
            skipped.append(f"{skip}: {describe()}")
        except (Exception, pytest.fail.Exception) as error:
            if not isinstance(error, Exception):  # pytest.fail raises a BaseException
                error = AssertionError(str(error))
            error.add_note(describe())
            errors.append(error)
    if errors:
        raise ExceptionGroup(f"{law}: {len(errors)} of {count} samples fail", errors)
    return count, skipped


def each_sample(
    holds: Callable = every_sample,
    *,
    among: Callable = lambda op: True,
    in_one_test: bool = False,
    quick: int | None = None,
):
    """Make a law ``law(op, sample)`` one test for each operation, over its samples.

    ``holds(op, sample)``: whether the law applies to the sample; an operation without such a sample
    has no test. ``among(op)``: the same for whole operations. ``in_one_test``: make a law that is
    checked quickly one test for all operations. ``quick``: a law that takes long is checked by
    `make test` on this many samples of an operation, by each law on others, and by the slow run on
    the rest.
    """

    def applies(name: str) -> bool:
        op = PRIMITIVES[name]
        return among(op) and any(holds(op, sample) for sample in SAMPLES[name])

    @functools.cache  # asked at the first call: a test over all operations is collected at once
    def names() -> list[str]:
        known = [name for name in SAMPLES if name in PRIMITIVES and _ONLY in (None, name)]
        return list(filter(applies, known))

    def more() -> list[str]:
        return [name for name in names() if len(SAMPLES[name]) > quick]

    def decorate(law: Callable) -> Callable:
        def cases_of(names: Callable, others=False) -> Iterator[tuple[Callable, Callable]]:
            for name in names():
                cases = samples_of(name, holds)
                if quick is not None:
                    chosen = places_of(len(cases), quick, len(law.__name__))
                    cases = [case for i, case in enumerate(cases) if (i in chosen) is not others]
                for i, sample in cases:
                    call = partial(law, PRIMITIVES[name], sample)
                    yield call, partial(described, name, i, sample)

        if in_one_test and quick is None:
            return _test_over(law, partial(cases_of, names))
        if in_one_test:
            groups = {"some": (names, False), "others": (more, True)}
        else:
            groups = {name: (partial(list, [name]), False) for name in names()}
            if quick is not None:
                groups |= {f"{n}, others": (partial(list, [n]), True) for n in more()}
        return _parametrized(law, groups, cases_of)

    return decorate


def each_of(names: Iterable[str]):
    """Make a law ``law(name)`` a single test over all these names."""
    return lambda law: _test_over(law, lambda: [(partial(law, n), partial(str, n)) for n in names])


def in_one_test(law: Callable) -> Callable:
    """Make a parametrized test a single one; written above its marks ``parametrize``.

    It is called for each combination of parameters, also after a failure. Its other arguments are
    fixtures, which all calls share.
    """
    marks = [mark for mark in law.pytestmark if mark.name == "parametrize"]
    law.pytestmark = [mark for mark in law.pytestmark if mark.name != "parametrize"]
    tables = [_rows(*mark.args, **mark.kwargs) for mark in marks]
    chosen = {name for table in tables for _, row in table for name in row}
    fixtures = [name for name in inspect.signature(law).parameters if name not in chosen]

    def cases(**values) -> Iterator[tuple[Callable, Callable]]:
        for rows in itertools.product(*tables):
            arguments = {name: value for _, row in rows for name, value in row.items()}
            labels = [label for label, _ in rows if label]
            call = partial(law, **values, **arguments)
            yield call, partial(_described_call, labels, arguments)

    return _test_over(law, cases, fixtures)


_Row = tuple[str | None, dict]  # the id and the arguments that a row of a mark parametrize gives


def _rows(argnames: str | Iterable[str], argvalues: Iterable, ids=None) -> list[_Row]:
    """The rows of a mark ``parametrize``. Rows with marks are refused."""
    names = argnames.split(",") if isinstance(argnames, str) else argnames
    names = [name.strip() for name in names]
    rows = [_row(names, row) for row in argvalues]
    if ids is None or callable(ids):
        return rows
    return [(label, row) for label, (_, row) in zip(ids, rows, strict=True)]


def _row(names: list[str], row) -> _Row:
    """One row of a mark ``parametrize``: the values of these names."""
    label = None
    if isinstance(row, type(pytest.param())):
        assert not row.marks, f"a row with marks: {row}"
        label, values = row.id, row.values
    else:
        values = (row,) if len(names) == 1 else row
    return label, dict(zip(names, values, strict=True))


def _described_call(labels: list[str], arguments: dict) -> str:
    """A call of a test as a line of a message: the ids of its rows, and its arguments."""
    given = ", ".join(f"{name} = {_described_value(value)}" for name, value in arguments.items())
    return f"{'-'.join(map(str, labels))}: {given}" if labels else given


def _described_value(value) -> str:
    """A value as text; a function by its name and line."""
    code = getattr(value, "__code__", None)
    if code is not None:
        return f"{value.__qualname__} of line {code.co_firstlineno}"
    return " ".join(repr(value).split())[:_MAX_ARGUMENT]


def _test_over(law: Callable, cases: Callable, fixtures: Iterable[str] = ()) -> Callable:
    """The test that a law holds for all ``cases(**fixtures)``."""

    def test(record_property, **values):
        _checked(law, cases(**values), record_property)

    names = ["record_property", *fixtures]
    test.__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    )
    return _named_like(law, test)


def _parametrized(law: Callable, groups: dict[str, tuple], cases_of: Callable) -> Callable:
    """The test, parametrized by groups, that a law holds for all ``cases_of(names, others)``.

    ``groups``: the id -> (a function that returns names, whether the samples are those that only
    the slow run checks).
    """
    params = [
        pytest.param(names, others, id=label, marks=[pytest.mark.slow] * others)
        for label, (names, others) in groups.items()
    ]

    @pytest.mark.parametrize(("names", "others"), params)
    def test(names, others, record_property):
        _checked(law, cases_of(names, others), record_property)

    return _named_like(law, test)


def places_of(total: int, count: int, start: int) -> set[int]:
    """Up to ``count`` evenly spaced numbers below ``total``; ``start`` turns them around."""
    return {(start + i * total // count) % total for i in range(count)} if total else set()


def _checked(law: Callable, cases: Iterable, record_property: Callable) -> None:
    """Check the cases, and record the numbers of those checked and skipped in the report."""
    count, skipped = check_each(law.__name__, cases)
    record_property("samples", count - len(skipped))
    record_property("skipped samples", len(skipped))
    if len(skipped) == count:
        pytest.skip(skipped[0] if skipped else "there is no such sample")


def _named_like(law: Callable, test: Callable) -> Callable:
    """The test with the name, module, marks and docstring of the law."""
    signature, marks = inspect.signature(test), getattr(test, "pytestmark", [])
    functools.update_wrapper(test, law, updated=())
    test.pytestmark = [*marks, *getattr(law, "pytestmark", ())]
    test.__signature__ = signature  # the fixtures that the test requests
    return test
