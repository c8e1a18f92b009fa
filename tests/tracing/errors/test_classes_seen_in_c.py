"""Functions written in C that refuse the class of a traced value [B2]."""

import decimal

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same

X = np.array([0.5, 1.5])


class Angles(np.ndarray):
    def __new__(cls, values):
        return super().__new__(cls, values.shape, float, values)


def rounded(x, number):
    return x * int(decimal.Decimal(number).quantize(decimal.Decimal(1)))


def of_subclass(x, number):
    return np.asarray(Angles(x * number)) + 1


def with_an_option(x, number, kind="subclass"):
    return of_subclass(x, number) if kind == "subclass" else x


each = pytest.mark.parametrize("f", [rounded, of_subclass, with_an_option])


@each
def test_the_error_says_so_and_names_the_line(f):
    with pytest.raises(lt.TraceError, match=r"(?s)not accept traced values.*at .*seen_in_c\.py"):
        lt.trace(f, X, 2.25)


@each
def test_jit_calls_functions_as_python_whose_c_code_refuses_traced_values(f):
    fast = lt.jit(f)

    with pytest.warns(RuntimeWarning, match=r"as Python.*\n  at .*test_classes_seen_in_c\.py"):
        assert_same(f(X, 2.25), fast(X, 2.25))
    for number in (3.5, 0.25, 7.0):
        assert_same(f(X, number), fast(X, number))


@pytest.mark.filterwarnings("ignore:jit calls")
def test_texts_among_the_arguments_are_not_blamed():
    fast = lt.jit(with_an_option)

    assert_same(with_an_option(X, 2.0, "subclass"), fast(X, 2.0, "subclass"))


def test_a_traced_seed_in_a_librarys_code_is_refused_by_name():
    stats = pytest.importorskip("scipy.stats")

    def difference(a, b):
        return a.mean() - b.mean()

    def p_value(x, seed):
        return stats.permutation_test((x, x + 1), difference, rng=seed, n_resamples=20).pvalue

    x = np.arange(3.0)
    with pytest.raises(lt.TraceError, match=r"seed: pass it by static_argnames\n.*in_c.py"):
        lt.trace(p_value, x, 1)
    with pytest.raises(TypeError, match="SeedSequence expects int"):
        lt.trace(lambda x: x * np.random.default_rng("seed").normal(), x)
    with pytest.warns(RuntimeWarning, match="as Python"):
        assert p_value(x, 1) == lt.jit(p_value)(x, 1)
