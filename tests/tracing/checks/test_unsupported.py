"""The errors for functions that cannot be recorded have the reason and a remedy."""

import numpy as np
import pytest

import letir as lt
from letir.errors import MissingRule
from letir.tracing.checks.unsupported import REFUSED
from letir.tracing.numpy_functions.registry import PLAIN
from letir.tracing.numpy_protocols.dispatch import recorder_of
from tests.each_sample import in_one_test


def test_the_error_for_a_refused_function_says_the_reason():
    with pytest.raises(MissingRule, match="isnat of traced values cannot be recorded") as e:
        lt.trace(np.isnat, np.ones(2))

    assert REFUSED[np.isnat] in str(e.value)


@in_one_test
@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_every_refused_function_is_unrecorded_and_has_a_remedy(function):
    assert recorder_of(function) is None and function not in PLAIN
    assert "; " in REFUSED[function], "a reason; and what to do"
