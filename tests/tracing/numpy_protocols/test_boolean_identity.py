import pytest

import letir as lt


def doubled_if_match(x):
    match (x > 0, abs(x) > 0.6):
        case (True, _):
            return x * 2
        case (False, True):
            return x**2
        case _:
            return x * 0.5


def doubled_if_true(x):
    return x * 2 if (x > 0) is True else x * 3


def is_on(flag):
    return flag is not False


def doubled_by_helper(x):
    return x * 2 if is_on(x > 0) else x * 3


@pytest.mark.parametrize("f", [doubled_if_match, doubled_if_true, doubled_by_helper])
def test_comparisons_of_python_numbers_are_true_by_identity(f):
    jitted = lt.jit(f, exact=True)

    for x in (0.5, -0.7, -0.2):
        lt.testing.assert_same(lt.trace(f, x)(x), f(x))
        lt.testing.assert_same(jitted(x), f(x))
        assert lt.grad(f)(x) == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6)


def test_the_branch_is_guarded():
    f = lt.trace(doubled_if_match, 0.5)

    with pytest.raises(lt.GuardError):
        f(-0.7)
