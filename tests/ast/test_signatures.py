"""Which arguments of public functions are flags, numbers and strings, by their annotations."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType, NoneType

import numpy as np

from letir.ast.signatures import plain_parameters


def annotated(
    f: Callable,
    n: int | None = None,
    axes: int | Sequence[int] = 0,
    path: str | Path = "",
    flag: bool = False,
    x: np.ndarray | None = None,
    chosen: Callable | None = None,
    word_or_function: str | Callable = "",
) -> str:
    raise NotImplementedError


def test_parameters_of_plain_kinds_have_the_classes_that_fit():
    """Not those that objects of other classes fit, nor functions, whose calls say what is wrong."""
    assert plain_parameters(annotated)[1] == {
        "n": {int, bool, NoneType},
        "axes": {int, bool},  # a sequence is looked at each time
        "flag": {bool},
        "chosen": {FunctionType, NoneType},
    }
