"""``replays``: trace a hazard at one input and replay it at others, also of other sizes."""

import os

import pytest

import letir as lt
from letir.errors import LetirError
from letir.testing import assert_same

RIGHT = "right"


def outcome(action, where: str | None) -> str:
    """ "right", or the name of the error; a LetirError must name the file ``where`` unless None."""
    try:
        action()
    except Exception as error:
        told = "\n".join([str(error), *getattr(error, "__notes__", ())])
        if isinstance(error, LetirError) and where is not None:
            assert where in told, f"{type(error).__name__} without the line: {told}"
        return type(error).__name__
    return RIGHT


@pytest.fixture
def replays():
    """Raise AssertionError unless a hazard has the outcomes that its row states.

    A row: (function, arguments, outcome of the trace or a list of (other arguments, outcome)). An
    outcome is "right" (what plain NumPy gives) or the name of an error.
    """

    def check(f, args, expected, **options):
        where, recorded = os.path.basename(f.__code__.co_filename) + ":", []
        traced = outcome(lambda: recorded.append(lt.trace(f, *args, **options)), where)
        if isinstance(expected, str):
            assert expected == traced
            return
        assert RIGHT == traced
        for other, wanted in [(args, RIGHT), *expected]:
            # mismatched arguments are refused before any line runs
            place = None if wanted in ("ShapeError", "DTypeError") else where
            results = []
            found = outcome(lambda o=other, r=results: r.append(recorded[0](*o)), place)
            assert wanted == found, f"at {other}: expected {wanted}, found {found}"
            if wanted == RIGHT:
                assert_same(f(*other), results[0])

    return check
