"""Arrays that letir does not record: jit calls functions of them as Python, trace and transforms
say what they are, at which line, and what to write instead."""

import copy
import warnings

import numpy as np
import pytest

import letir as lt
from letir.errors import LetirError

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")

STARTS = [np.arange(3.0) + 0.5 * n for n in range(13)]
RECORD = [("a", float), ("b", int)]
WORK, TABLE, RECORDS = np.zeros(3), np.zeros((4, 3)), np.zeros(3, RECORD)
STATE = (WORK, TABLE, RECORDS)


class Length(np.ndarray):
    """Arrays with a unit."""

    def __new__(cls, values, unit="m"):
        result = np.asarray(values).view(cls)
        result.unit = unit
        return result

    def __array_finalize__(self, other):
        self.unit = getattr(other, "unit", None)


LENGTHS = Length([1.0, 2.0, 3.0], "km")


def masked_mean(x):
    return np.ma.masked_less(x, 2.0).mean() * x


def masked_result(x):
    return np.ma.masked_less(x, 2.0)


def weighted_masked(x):
    return (np.ma.array([1.0, 2, 3], mask=[0, 1, 0]) * x).sum()


def matrix_product(x):
    return np.matrix([[1.0, 2, 3], [4, 5, 6]]) * x.reshape(3, 1)


def inverse_matrix(x):
    return np.matrix(np.diag(x + 1)).I


def with_unit(x):
    return Length(x, "mm") * 2


def of_lengths(x):
    return LENGTHS * x


def fills_array_outside(x):
    WORK[:] = x * 2
    return WORK.sum()


def adds_to_array_outside(x):
    WORK[0] += x.sum()
    return WORK * 2


def computes_into_array_outside(x):
    np.multiply(x, x, out=WORK)
    np.add(WORK, 1, out=WORK)
    return WORK.sum()


def fills_rows_outside(x):
    TABLE[1] = x
    TABLE[2, :2] = x[:2]
    return TABLE.sum(axis=0)


def copies_to_array_outside(x):
    np.copyto(WORK, x)
    return WORK.mean()


def fills_records_outside(x):
    RECORDS["a"] = x
    return RECORDS["a"].sum()


def gives_records(x):
    result = np.zeros(3, RECORD)
    result["a"] = x
    return result


def record_array(x):
    parts = np.rec.fromarrays([x, x * 2], names="a,b")
    return parts.a + parts.b


def gives_objects(x):
    result = np.empty(2, dtype=object)
    result[0], result[1] = x, x.sum()
    return result


def sum_of_objects(x):
    return np.array([x.sum(), x.max()], dtype=object).sum()


def dates(x):
    return np.datetime64("2020-01-01") + x.astype(int).astype("timedelta64[D]")


def words(x):
    return np.where(x > 2, "big", "small")


def extended_precision(x):
    return x.astype(np.longdouble).sum()


def bits(x):
    return x.view(np.int64)


UNRECORDED = [
    *(masked_mean, masked_result, weighted_masked, matrix_product, inverse_matrix, with_unit),
    *(of_lengths, fills_array_outside, adds_to_array_outside, computes_into_array_outside),
    *(fills_rows_outside, copies_to_array_outside, fills_records_outside, gives_records),
    *(record_array, gives_objects, sum_of_objects, dates, words, extended_precision, bits),
]


def days(x):
    times = np.array(["2020-01-01", "2020-01-05", "2020-01-09"], "datetime64[D]")
    return (x * ((times - times[0]) / np.timedelta64(1, "D"))).sum()


def own_records(x):
    parts = np.zeros(3, RECORD)
    parts["a"], parts["b"] = x, 2
    return (parts["a"] * parts["b"]).sum()


def own_objects(x):
    parts = np.empty(3, dtype=object)
    for i in range(3):
        parts[i] = x[: i + 1].sum()
    return np.array(list(parts)).sum()


def outcome(f):
    """(the results of calls with several arguments, the arrays outside after them), as text."""
    for array in STATE:
        array[...] = np.zeros((), array.dtype)
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # jit says that it calls Python
        for x in STARTS:
            result = f(x.copy())
            unit = getattr(result, "unit", None)
            results.append((type(result), np.shape(result), unit, copy.deepcopy(result)))
    return repr(results), repr(STATE)


@pytest.mark.parametrize("f", [*UNRECORDED, days, own_records, own_objects])
def test_jit_gives_the_results_of_python(f):
    assert outcome(f) == outcome(lt.jit(f))


@pytest.mark.parametrize("record", [lt.trace, lt.vjp])
@pytest.mark.parametrize("f", UNRECORDED)
def test_trace_and_transforms_name_the_line_and_what_to_write(f, record):
    with pytest.raises(LetirError) as caught:
        record(f, STARTS[1])

    lines = str(caught.value).splitlines()
    assert any("test_unusual_arrays.py:" in line for line in lines)
    assert len(lines) > 2  # what was found, the line, the remedy


def test_the_error_for_a_structured_result_names_its_type_and_its_fields():
    with pytest.raises(
        lt.TraceError, match=r"an array of type \[\('a', '<f8'\), .*\]\[3\]"
    ) as caught:
        lt.trace(gives_records, STARTS[0])

    assert "return the fields" in str(caught.value)


@pytest.mark.parametrize("f", [days, own_records, own_objects])
def test_a_function_of_numbers_computes_with_dates_records_and_objects_of_its_own(f):
    slope = np.array([f(STARTS[2] + e) - f(STARTS[2]) for e in np.eye(3)])

    assert lt.trace(f, STARTS[0])(STARTS[3]) == f(STARTS[3])
    np.testing.assert_allclose(lt.grad(f)(STARTS[2]), slope)
