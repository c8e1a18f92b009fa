"""fuse: elementwise binds become one bind with the same results [F7]."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Lambda, Local
from letir.ast.text.parser import parse
from letir.passes import fuse
from letir.passes.fusion.fusing import group_of, with_shared_bodies
from letir.testing import SAMPLES, assert_same, check_grads, programs

ELEMENTWISE = sorted(name for name in SAMPLES if PRIMITIVES[name].elementwise)
BESIDE = ["split", "concatenate", "sum", "matmul", "index", "index_set", "guard", "transpose"]


def ops(f: Lambda) -> list[str]:
    """The names of the operations, in order; for a group its members, joined by ``+``."""
    return [
        "+".join(b.op.name for b in group_of(bind).binds) if bind.op.name == "fused" else name
        for bind in f.binds
        for name in [bind.op.name]
    ]


def fused(text: str) -> list[str]:
    """The fused program of these binds, with parameters %0 and %1 (vectors) and %9 (a matrix)."""
    return ops(fuse(program(text)))


def program(text: str) -> Lambda:
    """A typed program of these binds, with parameters %0 and %1 (vectors) and %9 (a matrix)."""
    vector, matrix = lt.ShapeDtype((4,), float), lt.ShapeDtype((4, 4), float)
    return lt.retype(parse(f"lambda %0, %1, %9 {{ {text} }}"), vector, vector, matrix)


# ---- binds that are grouped ----


def test_a_chain_becomes_one_bind():
    """[F7]"""
    f = program("%2 = exp(%0); %3 = mul(%2, %1); %4 = add(%3, 1.0); return %4")

    assert ["exp+mul+add"] == ops(fuse(f))


def test_values_of_a_group_that_are_used_outside_are_its_results():
    f = fuse(program("%2 = exp(%0); %3 = mul(%2, %1); return (%2, %3)"))

    assert ["exp+mul"] == ops(f)
    assert list(f.ret.args) == list(f.binds[0].binders)


def test_one_bind_does_not_change():
    f = program("%2 = exp(%0); %3 = matmul(%9, %2); return %3")

    assert f is fuse(f)


def test_binds_of_different_shapes_are_not_grouped():
    f = program("%2 = exp(%0); %3 = neg(%9); %4 = mul(%2, %3); %5 = sin(%4); return %5")

    assert ["exp", "neg+mul+sin"] == ops(fuse(f))


def test_binds_of_unknown_types_are_not_grouped():
    f = parse("lambda %0 { %1 = exp(%0); %2 = neg(%1); return %2 }")

    assert f is fuse(f)


def test_a_bind_between_members_of_a_group_is_computed_before_it():
    assert ["matmul", "exp+mul"] == fused(
        "%2 = exp(%0); %3 = matmul(%9, %1); %4 = mul(%2, %3); return %4"
    )


def test_a_split_of_another_value_moves_before_a_group():
    """[F7]"""
    assert ["split", "exp+mul+reciprocal"] == fused(
        "%2 = exp(%0); %3 = mul(%2, %1); %4, %5 = split(%9, sections=2); %6 = reciprocal(%3);"
        "return (%6, %4, %5)"
    )


GATES = """lambda %0: float64[{n}, 256], %1: float64[256], %2: float64[{n}, 1] {{
  %3: float64[{n}, 256] = add(%0, %1);
  %4: float64[{n}, 256] = {op}(%3, %2);
  %5: float64[{n}, 128], %6: float64[{n}, 128] = split(%4, sections=2, axis=1);
  %7: float64[{n}, 128] = tanh(%5);
  %8: float64[{n}, 128] = exp(%6);
  %9: float64[{n}, 128] = mul(%7, %8);
  return {results} }}"""


def gates(n=200, op="mul", results="%9"):
    """A program that splits the result of elementwise operations."""
    return lt.check(parse(GATES.format(n=n, op=op, results=results)))


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_split_inside_a_group_moves_before_it(order):
    """[F7] An operand that broadcasts along the axis is split only if it has that axis."""
    f = gates()
    rng = np.random.default_rng(0)
    x, y = np.array(rng.normal(size=(200, 256)), order=order), rng.normal(size=256)
    args = x, y, rng.normal(size=(200, 1))

    assert ["split", "split", "add+add+mul+mul+tanh+exp+mul"] == ops(lt.check(fuse(f)))
    assert_same(f(*args), fuse(f)(*args))


@pytest.mark.parametrize(
    "f",
    [
        pytest.param(gates(n=8), id="small parts"),
        pytest.param(gates(op="arctan2"), id="other bits"),
        pytest.param(gates(results="(%9, %4)"), id="needed whole"),
        pytest.param(gates(results="(%9, %6)"), id="a part that is a result"),
    ],
)
def test_a_split_stays_where_parts_would_differ_or_cost_more(f):
    assert ["split"] == [op for op in ops(fuse(f)) if op == "split"]


def test_a_concatenate_ends_a_group():
    """[F7]"""
    assert ["exp+mul+concatenate", "sin+neg"] == fused(
        "%2 = exp(%0); %3 = mul(%2, %1); %4 = concatenate(%3, %2); %5 = sin(%4); %6 = neg(%5);"
        "return %6"
    )


def test_dead_bindings_never_block_a_group():
    """[F7] A live product would have to come between the two binds."""
    f = program("%2 = exp(%0); %3 = matmul(%9, %2); %4 = mul(%2, %1); return %4")

    assert ["exp+mul"] == ops(fuse(f))


def test_a_group_never_depends_on_its_own_result():
    """[F7] The sum needs the exponential and a value computed from it outside the group."""
    f = program("%2 = exp(%0); %3 = matmul(%9, %2); %4 = add(%2, %3); %5 = neg(%4); return %5")

    assert ["exp", "matmul", "add+neg"] == ops(lt.check(fuse(f)))


def test_groups_that_one_bind_reads_are_merged():
    assert ["exp+sin+mul"] == fused("%2 = exp(%0); %3 = sin(%1); %4 = mul(%2, %3); return %4")


def test_neighbours_that_read_the_same_values_are_merged():
    assert ["exp+sin"] == fused("%2 = exp(%0); %3 = sin(%0); return (%2, %3)")


def test_neighbours_that_read_different_values_stay_apart():
    f = program("%2 = exp(%0); %3 = sin(%1); return (%2, %3)")

    assert f is fuse(f)


def test_nothing_moves_past_an_effect():
    """[C5, F7]"""
    f = program("%8 = any(%1); %2 = exp(%0); guard(%8, value=True); %3 = neg(%2); return %3")

    assert f is fuse(f)


def test_random_draws_are_never_grouped():
    """[F7]"""
    key = lt.random.key(1)
    f = lt.trace(lambda x: np.exp(x * lt.random.uniform(key, (3,)) + 1), np.ones(3))

    inside = {
        b.op for bind in fuse(f).binds if bind.op.name == "fused" for b in group_of(bind).binds
    }
    assert inside
    assert not any(op.random for op in inside)


# ---- properties of fused programs ----


def test_names_and_source_lines_are_kept():
    def f(x):
        inner = np.exp(x)
        return inner * 2

    before = lt.trace(f, np.ones(3))
    (bind,) = fuse(before).binds

    assert "inner" in {b.name for inside in group_of(bind).binds for b in inside.binders}
    assert [b.source for b in before.binds] == [b.source for b in group_of(bind).binds]
    assert before.ret is fuse(before).ret


def test_bodies_are_fused_too():
    inner = lt.checkpoint(lambda x: np.exp(x) * 2 + 1)
    f = lt.trace(lambda x: inner(x) @ x, np.ones(3))

    assert ["exp+mul+add"] == ops(fuse(f).binds[0].attrs["body"])


def test_bodies_of_loops_are_fused():
    def step(h, x):
        h = np.tanh(h * x + 1)
        return h, h

    f = fuse(lt.trace(lambda h, xs: lt.scan(step, h, xs), np.ones(3), np.ones((5, 3))))

    assert ["mul+add+tanh"] == ops(f.binds[0].attrs["body"])


def test_running_the_pass_twice_gives_the_result_of_running_it_once():
    f = fuse(program("%2 = exp(%0); %3 = mul(%2, %1); return %3"))

    assert f is fuse(f)


def test_the_cost_of_a_group_counts_bytes_read_written_and_saved():
    (bind,) = fuse(program("%2 = exp(%0); %3 = mul(%2, %1); return %3")).binds
    group = group_of(bind)

    assert (4,) == group.shape
    assert (8, 64, 32, 32) == tuple(
        getattr(group.cost, name) for name in ("elements", "read", "written", "avoided")
    )
    assert (bind.args, bind.binders) == (group.inputs, group.outputs)


def test_a_retyped_group_has_the_new_shape():
    f = lt.retype(
        fuse(program("%2 = exp(%0); %3 = mul(%2, %1); return %3")),
        *[lt.ShapeDtype((7,), np.float32)] * 2,
        lt.ShapeDtype((4, 4), float),
    )

    assert (7,) == group_of(f.binds[0]).shape
    assert 28 == group_of(f.binds[0]).cost.avoided


@given(programs(ops=ELEMENTWISE + BESIDE, max_steps=24))
def test_results_are_the_same_to_the_bit(program):
    """[F7]"""
    f, args = program

    assert_same(lt.run_forward(f, *args), lt.run_forward(lt.check(fuse(f)), *args))


@given(programs(ops=ELEMENTWISE + BESIDE, max_steps=24))
def test_a_group_has_elementwise_binds_of_its_shape(program):
    groups = [group_of(bind) for bind in fuse(program[0]).binds if bind.op.name == "fused"]

    for group in groups:
        *binds, last = group.binds
        assert len(group.binds) > 1
        assert all(bind.op.elementwise and not bind.op.random for bind in binds)
        assert last.op.elementwise or last.op.name == "concatenate"
        shapes = {b.type.shape for bind in group.binds for b in bind.binders}
        assert group.shape is None or {group.shape} == shapes


def test_a_fused_program_has_the_derivatives_of_its_binds():
    f = fuse(lt.trace(lambda x, y: np.sin(x * y) * np.exp(x) + y, np.ones((2, 3)), np.ones(3)))

    assert 1 == len(f)
    check_grads(f, (np.linspace(0.2, 1, 6).reshape(2, 3), np.array([0.5, 1.5, -0.7])), order=2)


def test_the_source_of_a_fused_program_computes_the_same():
    f = program("%2 = exp(%0); %3 = mul(%2, %1); return %3")
    namespace: dict = {}
    exec(lt.to_source(fuse(f)), namespace)
    x, y = np.arange(4.0), np.arange(4.0) + 1

    assert_same(f(x, y, np.eye(4)), namespace["f"](x, y, np.eye(4)))


# ---- memory ----


def most_alive(f: Lambda) -> int:
    """The most bytes alive at any bind of ``f`` that is not a group."""
    last = {arg: i for i, t in enumerate((*f.binds, f.ret)) for arg in t.args if type(arg) is Local}
    made = dict.fromkeys(f.params, -1) | {b: i for i, t in enumerate(f.binds) for b in t.binders}
    alive = [
        sum(local.type.size for local in last if made[local] <= i <= last[local])
        for i, bind in enumerate(f.binds)
        if bind.op.name != "fused"
    ]
    return max(alive, default=0)


def test_a_sum_of_large_arrays_does_not_keep_them_all():
    """[F7, C1] In one group, every product would stay alive until the last one."""

    def f(x, w):
        total = x
        for _ in range(20):
            total = total + w @ total[:1]
        return total

    before = lt.trace(f, np.ones((300, 300)), np.ones((300, 1)))

    assert most_alive(fuse(before)) <= most_alive(before)


def test_fusing_around_large_products_keeps_no_more_memory_alive():
    def f(x, ws):
        total = np.exp(x)
        for w in ws:
            total = total + w @ w
        return total

    before = lt.trace(f, np.ones((100, 100)), [np.ones((100, 100))] * 8)

    assert most_alive(fuse(before)) <= most_alive(before)


def test_the_two_sides_of_a_sum_of_large_arrays_are_one_group():
    """The bytes that one side makes do not count against the other, with which it is merged."""
    f = lt.trace(lambda a, b, c: np.sin(a) * np.exp(b) + c * c, *[np.ones((200, 200))] * 3)

    assert ["sin+exp+mul+mul+add"] == ops(fuse(f))


def test_a_group_may_wait_for_small_products():
    f = lt.trace(lambda x, w: np.exp(x) + (w @ w) + (w @ x), np.ones((2, 2)), np.ones((2, 2)))

    assert ["matmul", "matmul", "exp+add+add"] == ops(fuse(f))


def test_running_a_group_needs_no_more_memory_than_running_its_binds():
    """[C1] Values are freed at their last use inside the group; so is the operand whose last use is
    the first bind of the group.
    """

    def f(w, x):
        y = w @ x
        for _ in range(8):
            y = np.sin(y) + np.exp(-y)
        return y

    args = np.ones((2, 2)), np.ones((2, 1 << 17))
    before = lt.trace(f, *args)

    assert peak(fuse(before), args) <= peak(before, args) + (1 << 16)


def peak(f: Lambda, args) -> int:
    """The peak number of bytes that a run allocates."""
    f(*args)
    tracemalloc.start()
    try:
        f(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_equal_groups_of_one_line_share_a_body():
    def f(x, w):
        for _ in range(3):
            x = w @ (np.sin(x) * 2.0 + 1.0)
        return np.sin(x) * 3.0 + 1.0

    fused = with_shared_bodies(fuse(lt.trace(f, np.ones(4), np.ones((4, 4)))))
    first, second, third, other = [b.attrs["body"] for b in fused.binds if b.op.name == "fused"]

    assert first is second is third
    assert other != first
    assert_same(f(np.ones(4), np.ones((4, 4))), fused(np.ones(4), np.ones((4, 4))))


def test_equal_groups_of_other_lines_keep_their_lines():
    def f(x, w):
        x = w @ (np.sin(x) * 2.0)
        return np.sin(x) * 2.0

    fused = with_shared_bodies(fuse(lt.trace(f, np.ones(4), np.ones((4, 4)))))
    lines = [b.attrs["body"].binds[0].source.line for b in fused.binds if b.op.name == "fused"]

    assert lines[1] == lines[0] + 1
