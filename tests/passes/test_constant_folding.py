"""constant_propagation: binds that do not depend on arguments are computed once, bit for bit."""

import numpy as np
import pytest
from hypothesis import given

import letir as lt
import letir.numpy as lnp
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Lambda
from letir.ast.text.parser import parse
from letir.passes import constant_propagation, dead_code
from letir.passes.constant_folding import is_foldable
from letir.testing import SAMPLES, applied_program, assert_same, programs
from tests.each_sample import each_of


def names(f) -> list[str]:
    return [bind.op.name for bind in f.binds]


def test_operations_on_constants_are_computed():
    f = lt.trace(lambda x: x + lnp.exp(lnp.zeros(3)).sum() * 2.0, np.ones(3))

    found = dead_code(lt.check(constant_propagation(f)))

    assert names(found) == ["constant", "add"]
    assert_same(lt.run_forward(f, np.ones(3)), lt.run_forward(found, np.ones(3)))


def test_a_guarded_integer_is_a_constant_after_its_guard():
    f = parse("""lambda %0: int64*[], %1: float64[3] {
      %2: float64[3] = mul(%1, %0)
      guard(%0, value=4)
      %3: int64[] = sub(%0, 1)
      %4: int64*[] = weaken(%3)
      guard(%4, value=3)
      %5: float64[3] = add(%2, %4)
      return (%5, %0)
    }""")

    found = dead_code(lt.check(constant_propagation(f)))

    assert names(found) == ["mul", "guard", "add"]
    assert found.ret.args[1] is found.params[0] is found.binds[1].args[0]
    assert_same(lt.run_forward(f, 4, np.ones(3)), lt.run_forward(found, 4, np.ones(3)))
    with pytest.raises(lt.GuardError):
        lt.run_forward(found, 5, np.ones(3))


def test_a_scalar_stays_a_scalar_and_an_array_an_array():
    f = parse("""lambda {
      %0: float64[] = exp(1.0)
      %1: float64[] = reshape(%0, shape=())
      return (%0, %1)
    }""")

    found = constant_propagation(f)

    assert names(found) == ["constant", "constant"]
    assert_same(lt.run_forward(f), lt.run_forward(found))
    assert type(lt.run_forward(found)[0]) is np.float64


def test_an_operation_that_raises_or_warns_is_not_folded():
    """[F4]"""
    texts = [
        "%1: float64[] = log(0.0)",
        "%1: float64[] = div(1.0, 0.0)",
        "%1: float64[] = exp(1000.0)",
        "%1: int64[] = floor_divide(1, 0)",
        "%1: float64[] = exp(-1000.0)",  # an underflow, of which np.errstate may warn
        "%1: int64[] = power(2, -1)",
    ]
    for text in texts:
        f = parse(f"lambda %0: float64[] {{ {text}; %2: float64[] = mul(%0, %1); return %2 }}")

        assert constant_propagation(f) is f


@pytest.mark.parametrize("limit, folded", [(80, True), (79, False)])
def test_results_above_the_size_limit_are_not_folded(limit, folded):
    """[F4]"""
    f = parse("""lambda %0: float64[10] {
      %1: float64[10] = ones(shape=(10,), dtype=float64)
      %2: float64[10] = exp(%1)
      %3: float64[10] = add(%0, %2)
      return %3 }""")

    found = dead_code(constant_propagation(f, limit=limit))

    assert ("exp" not in names(found)) == folded


def test_an_operation_with_a_large_result_is_not_even_tried():
    text = """lambda %0: float64[] {
      %1: float64[1000000000000] = zeros(shape=(1000000000000,), dtype=float64)
      %2: float64[] = sum(%1, axis=None)
      %3: float64[] = mul(%0, %2)
      return %3 }"""

    assert constant_propagation(parse(text)) is not None


def test_a_small_result_of_large_intermediate_arrays_is_not_folded():
    f = parse("""lambda %0: float64[3] {
      %1: float64[10000] = arange(start=0.0, stop=10000.0, step=1.0, dtype=float64)
      %2: float64[] = sum(%1)
      %3: float64[3] = add(%0, %2)
      return %3 }""")

    assert "arange" in names(constant_propagation(f))
    assert_same(f(np.ones(3)), constant_propagation(f)(np.ones(3)))


@pytest.mark.parametrize(
    "bind",
    [
        "%1: float64[] = mul(%0, 0.0)",  # nan * 0 is nan
        "%1: float64[] = sub(%0, %0)",
        "%1: float64[3] = random_normal(%0, shape=(3,), dtype=float64)",
    ],
)
def test_a_bind_that_depends_on_an_argument_stays(bind):
    f = parse(f"lambda %0 {{ {bind}; return %1 }}")

    assert constant_propagation(f) is f


def test_random_numbers_of_a_constant_key_are_drawn_when_it_runs():
    f = parse("""lambda {
      %0: uint32[2] = constant(value=uint32[2]{1, 2})
      %1: float64[3] = random_normal(%0, shape=(3,), dtype=float64)
      return %1
    }""")

    assert constant_propagation(f) is f


def test_the_sign_of_zero_and_the_bits_of_nan_stay():
    f = parse("""lambda {
      %0: float64[] = neg(0.0)
      %1: float64[] = neg(nan)
      return (%0, %1)
    }""")

    assert_same(lt.run_forward(f), lt.run_forward(constant_propagation(f)))


def test_a_buffer_that_is_updated_stays_a_buffer():
    def filled(x):
        buffer = lnp.zeros(3)
        buffer[0] = x
        return buffer

    f = lt.trace(filled, np.float64(1))

    assert "zeros" in names(constant_propagation(f))


def test_the_memory_order_of_a_folded_constant_is_kept():
    """The rounding of sums depends on the memory order."""
    f = parse("""lambda {
      %0: float64[2, 3] = constant(value=float64[2, 3]{1, 2, 3, 4, 5, 6})
      %1: float64[3, 2] = transpose(%0, axes=None)
      %2: float64[3, 2] = exp(%1)
      %3: float64[3, 2] = neg(%2)
      return (%2, %3)
    }""")

    found = lt.check(constant_propagation(f))

    assert names(found) == ["constant"] * 4
    assert all(b.attrs["value"].flags.f_contiguous for b in found.binds[1:])
    assert_same(lt.run_forward(f), lt.run_forward(found))


def test_a_view_that_no_copy_can_replace_is_not_folded():
    f = parse("""lambda {
      %0: float64[3] = constant(value=float64[3]{1, 2, 3})
      %1: float64[2, 3] = broadcast_to(%0, shape=(2, 3))
      return %1
    }""")

    assert constant_propagation(f) is f


def test_a_folded_python_number_stays_a_python_number():
    f = parse(
        "lambda %0: float32[] { %1: float64*[] = stop_gradient(2.5); "
        "%2: float32[] = mul(%0, %1); return (%1, %2) }"
    )

    found = constant_propagation(f)

    assert_same(lt.run_forward(f, np.float32(2)), lt.run_forward(found, np.float32(2)))


def test_results_do_not_share_memory_with_constants():
    """[C4]"""
    f = lt.trace(lambda x: lnp.exp(lnp.arange(3.0)), np.ones(3))
    found = constant_propagation(f)

    found(np.ones(3))[...] = 7

    assert_same(f(np.ones(3)), found(np.ones(3)))


def test_constants_in_bodies_are_computed():
    f = lt.trace(
        lambda i, x: lt.switch(i, [lambda x: x * lnp.exp(lnp.zeros(3)), lambda x: x], x),
        np.int64(0),
        np.ones(3),
    )

    bodies = constant_propagation(f).binds[-1].attrs["branches"]

    assert names(dead_code(bodies[0])) == ["constant", "mul"]


@each_of(sorted(n for n in SAMPLES if is_foldable(PRIMITIVES[n])))
@pytest.mark.filterwarnings("error")
def test_a_folded_result_equals_the_result_of_a_run(name):
    for sample in SAMPLES[name]:
        program, args = applied_program(PRIMITIVES[name], sample, constants=True)
        closed = with_constants(program, args)

        found = lt.check(constant_propagation(closed))

        with np.errstate(all="ignore"):
            assert_same(lt.run_forward(closed), lt.run_forward(found))


def with_constants(program: Lambda, args) -> Lambda:
    """``program`` with its arguments as constants; Python numbers are in it already."""
    builder = LetBuilder()
    return builder.build(builder.call(program, args))


@given(programs())
def test_constant_propagation_changes_no_result(program):
    f, args = program

    assert_same(lt.run_forward(f, *args), lt.run_forward(lt.check(constant_propagation(f)), *args))


@given(programs())
def test_results_of_programs_of_constants_are_unchanged(program):
    f, args = program
    closed = with_constants(f, args)

    found = lt.check(constant_propagation(closed))

    assert_same(lt.run_forward(closed), lt.run_forward(found))


@pytest.mark.parametrize(
    "results",
    ["%2, %3", "%2, %2", "%4", "%5", "%2, %3, %4, %5", "%6, %7", "%6, %6", "%8, %8", "%9"],
)
def test_results_share_memory_and_are_writable_as_before(results):
    """[C4] A constant is copied for each result, a value that the program computes is not."""
    f = parse(f"""lambda {{
      %1: float64[2, 3] = constant(value=float64[2, 3]{{0.0, 1.0, 2.0, 3.0, 4.0, 5.0}})
      %2: float64[2, 3] = exp(%1)
      %3: float64[6] = reshape(%2, shape=(6,))
      %4: float64[1, 2, 3] = broadcast_to(%2, shape=(1, 2, 3))
      %5: float64[3, 2] = transpose(%2, axes=None)
      %6: float64[] = exp(1.0)
      %7: float64[1] = reshape(%6, shape=(1,))
      %8: float64[] = copy(%6)
      %9: float64[3, 2] = sin(%5)
      return ({results}) }}""")

    expected, found = lt.run_forward(f), lt.run_forward(constant_propagation(f))

    expected, found = [x if type(x) is tuple else (x,) for x in (expected, found)]
    assert_same(expected, found)
    for a, x in zip(expected, found, strict=True):
        assert type(x) is type(a)
        assert x.flags.writeable == a.flags.writeable
        assert x.strides == a.strides
        shared = [np.may_share_memory(x, y) for y in found]
        assert shared == [np.may_share_memory(a, b) for b in expected]
