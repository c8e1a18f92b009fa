"""common_subexpressions and constant_pooling: equal binds and constants once, where allowed."""

import numpy as np
import pytest
from hypothesis import given

import letir as lt
from letir.ast.attrs import Attrs
from letir.ast.bodies import all_bodies
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.ast.text.parser import parse
from letir.eval.evaluator import compute
from letir.passes import common_subexpressions, constant_pooling, dead_code
from letir.passes.cse import merge_equal_binds
from letir.passes.memory.aliases import may_share
from letir.testing import SAMPLES, assert_same, programs
from tests.each_sample import each_of

# ---- common subexpressions ----


def test_equal_operations_on_the_same_values_are_merged():
    f = parse("""
    lambda %0, %1 {
      %2 = add(%0, %1)
      %3 = add(%0, %1)
      %4 = exp(%2)
      %5 = exp(%3)
      %6 = sub(%5, %4)
      return %6
    }""")

    expected = "lambda %0, %1 { %2 = add(%0, %1); %4 = exp(%2); %6 = sub(%4, %4); return %6 }"
    assert common_subexpressions(f) == parse(expected)


def test_results_of_an_operation_with_several_are_merged():
    f = parse("""
    lambda %0 {
      %1, %2 = split(%0, sections=2)
      %3, %4 = split(%0, sections=2)
      %5 = sub(%1, %4)
      return %5
    }""")

    expected = "lambda %0 { %1, %2 = split(%0, sections=2); %5 = sub(%1, %2); return %5 }"
    assert common_subexpressions(f) == parse(expected)


def test_equal_binds_in_bodies_and_equal_bodies_are_merged():
    f = parse("""
    lambda %0: bool[], %1: float64[] {
      %2: float64[] = cond(%0, %1, on_true=lambda %3: float64[] {
        %4: float64[] = exp(%3); %5: float64[] = exp(%3); %6: float64[] = mul(%4, %5); return %6
      }, on_false=lambda %7: float64[] { return %7 })
      %8: float64[] = cond(%0, %1, on_true=lambda %9: float64[] {
        %10: float64[] = exp(%9); %11: float64[] = mul(%10, %10); return %11
      }, on_false=lambda %12: float64[] { return %12 })
      %13: float64[] = add(%2, %8)
      return %13
    }""")

    found = lt.check(common_subexpressions(f))

    assert [bind.op.name for bind in found.binds] == ["cond", "add"]
    assert sorted(len(body) for body in all_bodies(found)) == [0, 2, 2]


@pytest.mark.parametrize(
    "binds",
    [
        "%2: int64[] = add(%0, 1); %3: float64[] = add(%0, 1.0)",
        "%2: float64[] = mul(%1, 0.0); %3: float64[] = mul(%1, -0.0)",
        "%2: float64[3] = expand_dims(%1, axis=0); %3: float64[3] = expand_dims(%1, axis=1)",
        "%2 = sub(%0, %1); %3 = sub(%1, %0)",
        "%2 = exp(%0); %3 = exp(%1)",
        "%2 = DRAW; %3 = DRAW",
        "guard(%0, value=1); guard(%0, value=2); %2 = exp(%0); %3 = neg(%1)",
        "%2 = index_set(%1, 1.0, item=0); %3 = index_set(%1, 1.0, item=1)",
        "%2 = barrier(%1); %3 = barrier(%1)",
    ],
)
def test_binds_that_differ_or_have_effects_are_not_merged(binds):
    """[F4]"""
    binds = binds.replace("float64[3]", "float64[]") if "expand" not in binds else binds
    binds = binds.replace("DRAW", "random_normal(%0, shape=(3,), dtype=float64)")
    f = parse(f"lambda %0, %1 {{ {binds}; %4 = add(%2, %3); return %4 }}")
    f = lt.passes.common_subexpressions(f)

    assert len(f) == binds.count(";") + 2


FILLED = """
    %{0}: float64[3] = full(%0, shape=(3,), dtype=float64)
    %{1}: float64[3] = index_set(%{0}, %1, item=0)
    %{2}: float64[3] = index_set(%{1}, %1, item=1)"""


def filled_twice(end: str) -> lt.Lambda:
    """Two equal arrays, each made and then written twice: %4 and %7."""
    binds = FILLED.format(2, 3, 4) + FILLED.format(5, 6, 7)
    return parse(f"lambda %0: float64*[], %1: float64*[] {{ {binds}\n {end} }}")


def test_equal_arrays_that_are_made_and_written_are_merged():
    f = filled_twice("%8: float64[3] = mul(%4, %7); return %8")

    found = lt.passes.dead_code(common_subexpressions(f))

    assert ["full", "index_set", "index_set", "mul"] == [bind.op.name for bind in found.binds]
    assert np.array_equal([25.0, 25.0, 4.0], lt.run_forward(found, 2.0, 5.0))


@pytest.mark.parametrize(
    "end",
    [
        "return (%4, %7)",
        "%8: float64[3] = index_set(%7, %0, item=2); return (%4, %8)",
        "%8: float64[3] = flip(%7, axis=0); return (%4, %8)",
    ],
)
def test_written_arrays_that_are_results_or_written_again_are_not_merged(end):
    """[C4, F4]"""
    f = filled_twice(end)

    found = common_subexpressions(f)
    results = lt.compile(found)(2.0, 5.0)

    assert len(found) == len(f)
    assert not np.shares_memory(*results)
    np.testing.assert_equal(results, lt.run_forward(f, 2.0, 5.0))


def test_values_computed_from_draws_in_bodies_are_not_merged():
    def draws(key, x):
        return lt.fori_loop(0, 3, lambda i, s: s + lt.random.normal(key, (3,)), x)

    f = lt.trace(
        lambda key, x: draws(key, x) * 2 + draws(key, x) * 2, lt.random.key(0), np.zeros(3)
    )

    assert [bind.op.name for bind in common_subexpressions(f).binds].count("mul") == 2


def test_of_equal_guards_the_first_one_stays():
    f = parse("lambda %0, %1 { guard(%0, value=1); %2 = exp(%1); guard(%0, value=1); return %2 }")

    assert [bind.op.name for bind in common_subexpressions(f).binds] == ["guard", "exp"]


def test_nan_constants_with_the_same_bits_are_the_same():
    f = parse("lambda %0 { %1 = add(%0, nan); %2 = add(%0, nan); %3 = mul(%1, %2); return %3 }")

    assert len(common_subexpressions(f)) == 2


def test_two_results_do_not_become_one_array():
    """[C4, F4]"""
    f = parse("lambda %0: float64[2] { %1 = exp(%0); %2 = exp(%0); return (%1, %2) }")

    assert common_subexpressions(f) is f


def test_two_results_do_not_come_to_share_memory_through_views():
    """[C4, F4]"""
    f = parse("""
    lambda %0: float64[2] {
      %1: float64[2] = exp(%0)
      %2: float64[2] = flip(%1, axis=0)
      %3: float64[2] = exp(%0)
      return (%2, %3)
    }""")

    a, b = lt.run_forward(common_subexpressions(f), np.ones(2))

    assert not np.shares_memory(a, b)


def test_a_result_is_merged_with_a_value_that_is_not_a_result():
    f = parse("""
    lambda %0: float64[2] {
      %1: float64[2] = exp(%0)
      %2: float64[2] = exp(%0)
      %3: float64[2] = neg(%1)
      return (%2, %3)
    }""")

    assert len(lt.check(common_subexpressions(f))) == 2


def test_a_buffer_that_is_updated_is_not_shared():
    """[F4, F6] A shared buffer would be copied, or overwritten before its last use."""
    f = parse("""
    lambda %0: float64[2] {
      %1: float64[2] = zeros(shape=(2,), dtype=float64)
      %2: float64[2] = zeros(shape=(2,), dtype=float64)
      %3: float64[2] = index_set(%1, 1.0, item=0)
      %4: float64[2] = add(%2, %3)
      return %4
    }""")

    assert common_subexpressions(f) is f


def test_reads_before_and_after_a_write_are_two():
    f = parse("""
    lambda %0: float64[2] {
      %1: float64[2] = exp(%0)
      %2: float64[2] = write_back(%0, %1)
      %3: float64[2] = exp(%0)
      %4: float64[2] = add(%1, %3)
      return (%2, %4)
    }""")

    assert common_subexpressions(f) is f


def test_draws_in_bodies_are_not_merged():
    """[F4]"""
    layer = parse("lambda %0 { %1 = random_normal(%0, shape=(3,), dtype=float64); return %1 }")
    x = Local()
    binds = [
        Bind((Local(),), PRIMITIVES["checkpoint"], (x,), Attrs(body=layer, saved=0))
        for _ in range(2)
    ]
    y = Local()
    binds.append(Bind((y,), PRIMITIVES["add"], tuple(b.binders[0] for b in binds)))
    f = Lambda((x,), binds, Ret((y,)))

    assert common_subexpressions(f) is f


def test_effects_in_bodies_happen_as_often_as_before():
    """[F4]"""
    branch = "lambda %A: float64[] { print(%A, text='{}'); return %A }"
    cond = f"cond(%0, %1, on_true={branch}, on_false={branch.replace('A', 'B')})"
    first, second = [cond.replace("A", str(i)).replace("B", str(i + 1)) for i in (4, 6)]
    f = parse(f"""
    lambda %0: bool[], %1: float64[] {{
      %2: float64[] = {first}
      %3: float64[] = {second}
      %8: float64[] = add(%2, %3)
      return %8
    }}""")

    assert common_subexpressions(f) is f


def test_an_operation_without_types_does_not_replace_a_typed_one():
    f = parse("lambda %0 { %1 = exp(%0); %2: float64[3] = exp(%0); return %2 }")

    assert common_subexpressions(f) is f


def test_operations_of_users_are_never_merged():
    """[B12]"""
    count = iter(range(9))
    record = lt.opaque(lambda x: x + next(count), lambda x: x, name="mine.counter")
    try:
        f = lt.trace(lambda x: record(x) - record(x), np.ones(2))
        assert common_subexpressions(f) is f
    finally:
        del PRIMITIVES["mine.counter"]


def test_a_recomputation_is_not_merged_with_the_original():
    """[F4] Otherwise the values that a checkpoint drops would be kept."""
    layer = lt.checkpoint(lambda x: np.tanh(np.sin(np.exp(x))))
    f = lt.value_and_grad(lt.trace(lambda x: layer(layer(x)).sum(), np.ones(3)))

    again = [
        lt.value_and_grad(
            lt.trace(lambda x: np.tanh(np.sin(np.exp(x))).sum(), np.ones(3)),
            policy=lambda bind: False,
        ),
        lt.passes.inline_bodies(f) if hasattr(lt.passes, "inline_bodies") else f,
    ]

    for program in again:
        found = common_subexpressions(program)
        names = [bind.op.name for bind in found.binds]
        assert names.count("exp") == [bind.op.name for bind in program.binds].count("exp")
        assert_same(program(np.ones(3)), found(np.ones(3)))


def test_the_remaining_binds_keep_their_names_and_source_lines():
    f = lt.trace(lambda x: np.exp(x) + np.exp(x), np.ones(2))

    assert common_subexpressions(f).binds[0] is f.binds[0]


def test_a_program_without_repetitions_is_the_same_object():
    f = lt.trace(lambda x: np.exp(x) + np.sin(x), np.ones(2))

    assert common_subexpressions(f) is f and constant_pooling(f) is f


@given(programs())
def test_merging_equal_binds_changes_no_result(program):
    f, args = program

    assert_same(lt.run_forward(f, *args), lt.run_forward(lt.check(twice_shared(f)), *args))


def twice_shared(f: Lambda) -> Lambda:
    """``f`` with all binds repeated and then merged; results come from either copy."""
    again = {param: param for param in f.params}
    binds = []
    for bind in f.binds:
        args = tuple([again.get(a, a) if type(a) is Local else a for a in bind.args])
        binders = tuple([Local(b.type, b.name) for b in bind.binders])
        again.update(zip(bind.binders, binders, strict=True))
        binds += [bind, Bind(binders, bind.op, args, bind.attrs, bind.source)]
    ret = [again.get(a, a) if i % 2 else a for i, a in enumerate(f.ret.args)]
    doubled = Lambda(f.params, binds, Ret(tuple(ret)), f.in_tree, f.out_tree)
    return dead_code(constant_pooling(common_subexpressions(doubled)))


# ---- constants ----


def test_equal_constants_are_bound_once():
    first, second = np.arange(3.0), np.arange(3.0)
    f = lt.trace(lambda x: (x + first) * second, np.ones(3))

    found = lt.check(constant_pooling(f))

    assert (len(f.constants), len(found.constants)) == (2, 1)


@pytest.mark.parametrize(
    "other", [np.zeros(3) * -1, np.zeros(3, "f4"), np.zeros((3, 1)), np.full(3, 5e-324)]
)
def test_constants_that_differ_stay(other):
    zeros = np.zeros(3)
    f = lt.trace(lambda x: (x + zeros) * other, np.ones(3))

    assert constant_pooling(f) is f


def test_equal_constants_of_bodies_are_one_array():
    tables = [np.arange(3.0) for _ in range(3)]
    branches = [lambda x: x + tables[0], lambda x: x * tables[1]]
    f = lt.trace(lambda i, x: lt.switch(i, branches, x) + tables[2], np.int64(0), np.ones(3))

    arrays = [b.attrs["value"] for body in all_bodies(constant_pooling(f)) for b in body.constants]

    assert len(arrays) == 3 and len({id(array) for array in arrays}) == 1


def test_both_results_are_copies_of_a_constant():
    """[C4]"""
    table = np.arange(3.0)
    f = lt.trace(lambda x: (table + 0 * x, x), np.ones(3))
    x, y = (Local(bind.binders[0].type) for bind in (f.constants[0],) * 2)
    binds = [Bind((local,), f.constants[0].op, (), f.constants[0].attrs) for local in (x, y)]
    g = common_subexpressions(constant_pooling(Lambda((), binds, Ret((x, y, x)))))

    a, b, again = lt.run_forward(g)

    assert len(g) == 2 and not np.shares_memory(a, b) and again is a


# ---- sharing of memory ----


@each_of(sorted(SAMPLES))
def test_results_declared_to_share_no_memory_share_none(name):
    record = PRIMITIVES[name]
    if may_share(record):
        pytest.skip("it may share")
    for sample in SAMPLES[name]:
        args = [a.copy() if isinstance(a, np.ndarray) else a for a in sample.args]
        with np.errstate(all="ignore"):
            out = compute(record, list(args), record.complete(sample.attrs))
        outs = (out,) if record.results is None else tuple(out)
        arrays = [a for a in (*args, *outs) if isinstance(a, np.ndarray)]
        for i, a in enumerate(arrays):
            for b in arrays[max(i + 1, len(arrays) - len(outs)) :]:
                assert a is not b and not np.may_share_memory(a, b)


def test_only_binds_that_may_be_merged_are_merged():
    fn = parse("lambda %0 { %1 = exp(%0); %2 = exp(%0); %3 = mul(%1, %2); return %3 }")

    assert merge_equal_binds(fn, lambda op: op.name != "exp") is fn
    assert merge_equal_binds(fn, lambda op: True, lambda bind, first: False) is fn
    assert ["exp", "mul"] == [b.op.name for b in merge_equal_binds(fn, lambda op: True).binds]


def test_a_result_that_stands_for_another_is_a_result_itself():
    """After the first merge %1 is a result; merged again, two results would share memory."""
    f = parse("""
    lambda %0: float64[3] {
      %1: float64[3] = neg(%0)
      %2: float64[3] = neg(%0)
      %3: float64[3] = neg(%0)
      %4: float64[3] = exp(%1)
      return (%2, %3, %4)
    }""")
    one, other, _ = common_subexpressions(f)(np.ones(3))

    assert not np.shares_memory(one, other)


def test_constants_of_another_memory_order_are_not_merged():
    rows, columns = np.ones((2, 3)), np.ones((2, 3), order="F")
    f = lt.trace(lambda x: (x + rows, x + columns, rows, columns), 1.0)

    for change in (common_subexpressions, constant_pooling):
        for expected, found in zip(f(1.0), change(f)(1.0), strict=True):
            assert_same(expected, found)
            assert expected.strides == found.strides
