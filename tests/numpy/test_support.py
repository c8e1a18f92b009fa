"""Coverage of NumPy: each public function is called once, or refused with a reason."""

import functools
import operator
import runpy
from pathlib import Path

import numpy as np
import pytest

from letir.testing.calls import CALLS
from letir.testing.calls.support import NONE, YES, public_functions, support_of
from letir.tracing.checks.unsupported import refusal_reason
from tests.each_sample import each_of

ROOT = Path(__file__).parent.parent.parent
PAGE = runpy.run_path(str(ROOT / "docs" / "make_numpy.py"))
PUBLIC = list(public_functions())
found = functools.cache(support_of)


@each_of(PUBLIC)
def test_a_public_function_is_recorded_or_refused_with_a_reason(name):
    assert name in CALLS, f"add a call of numpy.{name} to letir/testing/calls"
    is_recorded = found(name).is_recorded

    assert is_recorded or refusal_reason(operator.attrgetter(name)(np)), found(name).namespace


@each_of(PUBLIC)
def test_a_derivative_is_right_or_missing(name):
    support = found(name)

    assert {support.vjp, support.jvp, support.complexes} <= {YES, NONE}


def test_nineteen_of_twenty_public_functions_are_recorded():
    recorded = [name for name in PUBLIC if found(name).is_recorded]

    assert 0.95 <= len(recorded) / len(PUBLIC)


def test_the_page_of_functions_is_up_to_date():
    """If this fails: python docs/make_numpy.py."""
    page = (ROOT / "docs" / "numpy.md").read_text(encoding="utf-8")
    if f"NumPy {PAGE['VERSION']}." not in page:
        pytest.skip(f"the page is of another NumPy than {PAGE['VERSION']}")

    assert PAGE["page"]() == page
