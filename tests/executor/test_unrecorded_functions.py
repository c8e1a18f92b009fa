"""``jit`` calls functions that cannot be recorded as Python, and says so once."""

import warnings

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same

TOLD = "as Python, without a plan"
COUNTS: list = []


def masked_mean(x):
    """The mean of the elements that are not negative, by a masked array."""
    return np.ma.masked_less(x, 0).mean()


def counted(x):
    COUNTS.append(1)
    return masked_mean(x)


def by_matrix(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        m = np.matrix(x)
        return np.asarray(m * m)


def reflectors(x):
    return np.linalg.qr(x, mode="raw")[0]


def extended(x):
    return float(x.astype(np.longdouble).sum())


def bits(x):
    return x.view(np.int64) + 1


def sometimes(x, n):
    return np.ma.masked_less(x, 0).sum() if n > 2 else x.sum()


@pytest.mark.parametrize("f", [masked_mean, by_matrix, reflectors, extended, bits])
def test_the_python_function_gives_the_results(f):
    fast, rng = lt.jit(f), np.random.default_rng(0)

    with pytest.warns(RuntimeWarning, match=TOLD):
        for n in (3, 3, 4):
            x = rng.normal(size=(n, n))
            np.testing.assert_array_equal(f(x), fast(x))


LABELS = np.array(["low", "high", "none"])
RESULTS_OF_OTHER_KINDS = {
    "labels": lambda x: LABELS[np.argmax(x, axis=0)],
    "texts": lambda x: np.array([f"{v:.1f}" for v in x[0]]),
    "objects": lambda x: np.array([x, None], dtype=object)[0],
    "dates": lambda x: np.ones(x.shape[0], "M8[D]"),
}


@pytest.mark.parametrize("name", RESULTS_OF_OTHER_KINDS)
def test_arrays_of_strings_objects_and_dates_are_made_by_python(name):
    f = RESULTS_OF_OTHER_KINDS[name]
    fast = lt.jit(f)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in (np.eye(3), np.ones((3, 3))):
            np.testing.assert_array_equal(f(x), fast(x))


def test_a_function_that_returns_a_generator_gives_it():
    fast = lt.jit(lambda x: (x * 2, (element + 1 for element in x)))

    with pytest.warns(RuntimeWarning, match="return a list of what it yields"):
        doubled, elements = fast(np.arange(3.0))

    assert_same(np.arange(3.0) * 2, doubled)
    assert [1.0, 2.0, 3.0] == list(elements)


def show(x):
    print(f"the sum of {x.size} is {x.sum()}")


def show_sign(x):
    if x.sum() > 0:
        print("positive")


def refuse_negative(x):
    if x.min() < 0:
        raise ValueError(f"negative: {x.min()}")


class Response:
    def __init__(self, values, text):
        self.values, self.text = values, text

    def __repr__(self):
        return self.text * 50 if self.text else repr(self.missing)


@pytest.mark.parametrize("text", ["line\n", "long", ""])
def test_warnings_name_long_results_by_their_class(text):
    fast = lt.jit(lambda x: Response(2 * x, text))

    with pytest.warns(RuntimeWarning, match="returned an object of type Response") as caught:
        assert_same(np.full(2, 2.0), fast(np.ones(2)).values)
    assert len(str(caught[0].message)) < 400


@pytest.mark.parametrize("f", [show, show_sign, refuse_negative])
def test_functions_that_compute_nothing_run_as_python_after_their_first_call(f, capsys):
    def outcome(f, x):
        try:
            f(x)
        except ValueError as error:
            return str(error)
        return capsys.readouterr().out

    fast = lt.jit(f)
    fast(np.ones(2))
    capsys.readouterr()

    for x in (np.ones(2), np.ones(3), -np.ones(2), -np.ones(4), np.zeros(4)):
        assert outcome(f, x) == outcome(fast, x)
    assert fast.counters["compiles"] == (f is not show)


SETTINGS = {"safe": True}


def set_safe(value):
    SETTINGS["safe"] = value


def is_safe():
    return SETTINGS["safe"]


def test_functions_that_give_constants_read_settings_again():
    ours, sets = lt.jit(is_safe), lt.jit(set_safe)
    assert ours() is True

    for value in (False, True, False, True):
        sets(value)
        assert SETTINGS["safe"] is value
        assert ours() is value


class Quaternion(np.ndarray):
    """An array with attributes."""

    def __new__(cls, values):
        made = np.asarray(values, float).view(cls)
        made.parts = np.array(values, float)
        return made

    def norm(self):
        return np.sqrt((self.parts * self.parts).sum())

    def conjugate(self):
        self.parts[1:] *= -1.0
        return self * 2.0


def test_methods_of_a_class_of_arrays_run_as_python():
    norm, conjugate = lt.jit(Quaternion.norm), lt.jit(Quaternion.conjugate)
    ours, theirs = Quaternion([1, 2, 3, 4]), Quaternion([1, 2, 3, 4])

    with pytest.warns(RuntimeWarning, match="Quaternion is not an array of numbers"):
        assert norm(ours) == theirs.norm()
    with pytest.warns(RuntimeWarning, match="as Python"):
        for _ in range(3):
            found, expected = conjugate(ours), theirs.conjugate()
            assert type(found) is Quaternion
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(ours.parts, theirs.parts)


def test_a_jitted_method_in_a_class_of_arrays_runs_as_python():
    class Jitted(Quaternion):
        norm = lt.jit(Quaternion.norm)
        scaled_norm = lt.jit(lambda self, k: k * self.parts.sum())

    q = Jitted([1, 2, 3, 4])
    with pytest.warns(RuntimeWarning, match="the object of the method is an array, of class Jit"):
        assert [q.norm(), q.norm()] == [np.sqrt(30.0)] * 2
    with pytest.warns(RuntimeWarning, match="the object of the method is an array"):
        assert lt.grad(q.scaled_norm)(1.0) == 10.0


def test_a_method_that_computes_nothing_has_plans_for_other_arguments():
    class Model:
        def show(self, x, quiet):
            if quiet:
                return None
            return x * 2.0

    fast, model = lt.jit(Model.show), Model()
    for n in range(12):
        assert fast(model, np.ones(2), True) is None
        assert_same(np.full(2, 2.0 * n), fast(model, np.full(2, float(n)), False))


@pytest.mark.filterwarnings("ignore:jit calls")
def test_a_float_setting_of_a_function_runs_as_python():
    fast = lt.jit(np.linalg.norm)
    x = np.array([1.0, -3.0, 2.0])

    for p in (3.0, np.inf, 2.5, -np.inf):
        assert_same(fast(x, p), np.linalg.norm(x, p))


def test_the_warning_comes_once_and_names_the_line():
    fast = lt.jit(masked_mean)

    with pytest.warns(RuntimeWarning, match="test_unrecorded_functions.py:17") as told:
        fast(np.ones(3))
        fast(np.ones(4))

    assert 1 == len(told)


def test_state_that_the_recording_changed_is_restored():
    COUNTS.clear()

    with pytest.warns(RuntimeWarning, match=TOLD):
        fast = lt.jit(counted)
        fast(np.ones(3))
        fast(np.ones(3))

    assert 2 == len(COUNTS)


def test_explain_says_why_there_is_no_plan():
    with pytest.warns(RuntimeWarning, match=TOLD):
        fast = lt.jit(masked_mean)
        fast(np.ones(3))
    found = lt.explain(fast, np.ones(3))

    assert "cannot become an ordinary array" in found.why_python
    assert str(found).startswith("masked_mean(float64[3])\ncalled as Python, without a plan: ")


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="longdouble is float64 here")
def test_longdouble_arguments_reach_the_python_function():
    fast = lt.jit(lambda x: x + 1)

    with pytest.warns(RuntimeWarning, match="float128|longdouble"):
        found = fast(np.longdouble(1) / 3)

    assert np.longdouble(1) / 3 + 1 == found
    assert 2.5 == fast(1.5)


def test_a_branch_that_cannot_be_recorded_runs_at_other_sizes():
    fast = lt.jit(sometimes)

    with pytest.warns(RuntimeWarning, match=TOLD):
        for n in range(1, 6):
            x = np.linspace(-1, 2, n + 3)
            np.testing.assert_allclose(fast(x, n), sometimes(x, n))


@pytest.mark.parametrize("transform", [lt.grad, lambda f: lt.grad(lt.jit(f))])
def test_a_gradient_is_a_named_error_without_a_warning(transform):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(lt.TraceError, match="cannot become an ordinary array"):
            lt.jit(transform(masked_mean))(np.ones(3))


def test_trace_refuses_a_function_that_jit_calls_as_python():
    with pytest.raises(lt.TraceError, match="masked arrays are not recorded"):
        lt.trace(masked_mean, np.ones(3))


class Fit:
    def __init__(self, slope, bounds):
        self.slope, self.bounds = slope, bounds


RESULTS = {
    "an object": lambda x: Fit(x.sum(), [x.min(), x.max()]).slope * np.ones(2),
    "an object that holds arrays": lambda x: Fit(x.sum(), [x.min(), x.max()]),
    "a set": lambda x: {len(x), "a"},
    "a dtype": lambda x: (x * 2).dtype,
    "a function": lambda x: np.sin if x.sum() > 0 else np.cos,
    "a range": lambda x: range(len(x)),
}


@pytest.mark.parametrize("f", RESULTS.values(), ids=RESULTS)
@pytest.mark.filterwarnings("ignore:jit calls")
def test_results_that_are_not_arrays_are_those_of_python(f):
    fast = lt.jit(f)

    for x in (np.ones(3), 2 * np.ones(3), -np.ones(4)):
        expected, found = f(x), fast(x)
        if isinstance(expected, Fit):
            assert_same(vars(expected), vars(found))
        elif isinstance(expected, np.ndarray):
            assert_same(expected, found)
        else:
            assert expected == found


def test_a_result_that_is_not_an_array_is_named_in_a_warning():
    with pytest.warns(RuntimeWarning, match=r"returned range\(0, 3\) of type range"):
        lt.jit(lambda x: range(len(x)))(np.ones(3))


MATRIX = np.array([[1.0, 2.0], [3.0, 4.0]]).view(np.matrix)
MASKED = np.ma.array([1.0, 2.0], mask=[False, True])
OBJECTS = np.array([1, 2.5], dtype=object)
OPERANDS_OF_OTHER_CLASSES = {
    "product": lambda x: x.dot(MATRIX),
    "operator": lambda x: MATRIX @ x,
    "solve": lambda x: np.linalg.solve(x, MATRIX),
    "joined": lambda x: np.vstack((MATRIX, x)) * x,
    "blocks": lambda x: np.block([[x, MATRIX]]),
    "written": lambda x: x.__setitem__(0, MATRIX[0]),
    "masked": lambda x: x[0] + MASKED,
    "objects": lambda x: x[0] * OBJECTS,
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("name", OPERANDS_OF_OTHER_CLASSES)
def test_operands_of_other_classes_give_numpys_results(name):
    """NumPy's results are matrices, masked arrays and arrays of objects."""
    f = OPERANDS_OF_OTHER_CLASSES[name]
    fast, x = lt.jit(f), np.array([[1.0, 2.5], [0.5, 3.0]])

    with pytest.warns(RuntimeWarning, match=TOLD):
        for y in (x, x, 2 * x):
            expected, result = f(y.copy()), fast(y.copy())
            assert type(result) is type(expected)
            assert str(result) == str(expected)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("name", ["joined", "blocks"])
def test_a_trace_refuses_to_join_a_matrix(name):
    """The result would be a matrix, whose ``*`` is a product."""
    with pytest.raises(lt.errors.DTypeError, match="matrix is not an array of numbers"):
        lt.trace(OPERANDS_OF_OTHER_CLASSES[name], np.ones((2, 2)))
