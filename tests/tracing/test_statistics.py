"""Python's module ``statistics`` on traced numbers: its numbers, its classes and its errors."""

import statistics

import numpy as np
import pytest

import letir as lt
from tests.each_sample import in_one_test

X = np.array([1.5, -2.0, 0.25, 4.0])
CALLS = {
    **{
        name: lambda x, name=name: getattr(statistics, name)(x)
        for name in ("mean", "fmean", "median", "median_low", "median_high", "variance")
    },
    **{name: lambda x, name=name: getattr(statistics, name)(x) for name in ("pvariance", "stdev")},
    "pstdev": lambda x: statistics.pstdev(x),  # noqa: PLW0108  the function is replaced
    "a known mean": lambda x: statistics.variance(x, 1.0) + statistics.pstdev(x, mu=0.5),
    "weights": lambda x: statistics.fmean(x, weights=[1, 2, 3, 4]),
    "an odd count": lambda x: statistics.median(x[:3]),
    "Python numbers": lambda x: statistics.mean([float(x[0]), 2.0, float(x[1])]),
    "integers": lambda x: statistics.mean([int(x[0]), int(x[3])]),
    "truth values": lambda x: statistics.mean([float(x[0]) > 0, float(x[1]) > 0]),
    "no traced number": lambda x: statistics.stdev([1.0, 2.0]) * x,
}


@in_one_test
@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("name", CALLS)
def test_a_replay_gives_the_numbers_of_the_module(name, dtype):
    f, x = CALLS[name], X.astype(dtype)
    program = lt.trace(f, x)

    for given in (x, x * 1.125):
        expected = f(given)
        found = program(given)

        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, 1e-6 if dtype is np.float32 else 1e-14)


@pytest.mark.parametrize("f", [statistics.stdev, statistics.variance, statistics.mean])
def test_too_few_numbers_are_the_error_of_the_module(f):
    name = f.__name__  # the name is looked up while it is recorded

    def call(x):
        return getattr(statistics, name)([x][: len([x]) if name != "mean" else 0])

    with pytest.raises(statistics.StatisticsError, match="at least"):
        lt.trace(call, 1.5)


def test_outside_of_a_trace_it_is_the_function_of_the_module():
    stand_ins = []
    lt.trace(lambda x: stand_ins.append(statistics.pvariance) or x, 1.0)

    assert stand_ins[0]([1.0, 2.0, 4.0]) == statistics.pvariance([1.0, 2.0, 4.0])


POINTS = [1.0, 2.0, 4.0, 5.0]
MORE_CALLS = {
    "harmonic_mean": lambda x: statistics.harmonic_mean(np.abs(x)),
    "harmonic_mean of a list": lambda x: statistics.harmonic_mean(np.abs(x).tolist()),
    "with weights": lambda x: statistics.harmonic_mean(np.abs(x).tolist(), weights=[1, 2, 3, 4]),
    "geometric_mean": lambda x: statistics.geometric_mean(x * x),
    "covariance": lambda x: statistics.covariance(x.tolist(), POINTS),
    "correlation": lambda x: statistics.correlation(POINTS, x.tolist()),
    "linear_regression": lambda x: statistics.linear_regression(POINTS, x.tolist()),
    "a line through 0": lambda x: statistics.linear_regression(
        POINTS, x.tolist(), proportional=True
    ),
}


@pytest.mark.parametrize("name", MORE_CALLS)
def test_means_of_other_kinds_and_statistics_of_points(name):
    f = MORE_CALLS[name]
    program = lt.trace(f, X)

    for given in (X, X * 1.125):
        expected, result = f(given), program(given)
        assert type(result) is type(expected)
        np.testing.assert_allclose(result, expected, rtol=1e-14)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: statistics.harmonic_mean(x.tolist()),
        lambda x: statistics.geometric_mean(x.tolist()),
        lambda x: statistics.correlation(POINTS, (x * 0).tolist()),
        lambda x: statistics.linear_regression((x * 0).tolist(), POINTS),
        lambda x: statistics.covariance(x.tolist(), POINTS[:2]),
    ],
)
def test_values_without_such_a_statistic_are_the_error_of_the_module(f):
    with pytest.raises(statistics.StatisticsError) as ours:
        lt.trace(f, X)
    with pytest.raises(statistics.StatisticsError) as pythons:
        f(X)
    assert str(pythons.value) == str(ours.value)


def test_numbers_of_other_signs_are_not_replayed():
    program = lt.trace(lambda x: statistics.harmonic_mean(x.tolist()), np.abs(X))

    assert 0 == lt.jit(lambda x: statistics.harmonic_mean(x.tolist()))(np.array([1.0, 0.0]))
    for given in (X, np.abs(X) * [0, 1, 1, 1]):
        with pytest.raises(lt.GuardError):
            program(given)


@pytest.mark.parametrize("f", [statistics.geometric_mean, statistics.harmonic_mean])
def test_means_of_nan_are_nan(f):
    name = f.__name__
    x = np.array([1.0, np.nan, 2.0])

    assert np.isnan(lt.trace(lambda x: getattr(statistics, name)(x.tolist()), x)(x))
