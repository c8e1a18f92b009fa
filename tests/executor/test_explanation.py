"""``explain``: the plan of a call, why it was compiled, what passes did, and what binds cost."""

import dataclasses
import functools
import re
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import letir as lt
from letir import Variable, explain, jit, parse
from letir.executor.explanation import PassReport

X, W = np.ones((3, 4)), np.ones((4, 4))


def net(x, w):
    """A function with common subexpressions and a fusible chain."""
    h = np.tanh(x @ w) * 2 + np.tanh(x @ w)
    return (h * h).sum(), h.argmax()


def test_the_reason_of_a_compile_is_the_difference_from_the_last_call():
    fast = jit(net)

    first, second = explain(fast, X, W), explain(fast, X, W)
    other = explain(fast, X, W.astype(np.float32))

    assert first.is_new and first.reason == "it is the first call"
    assert not second.is_new
    assert other.reason == "w, the second argument, is float32[4, 4], was float64[4, 4]"
    assert 2 == fast.counters["compiles"]


def test_the_changes_of_each_pass_are_counted():
    found = explain(jit(net), X, W)

    steps = {step.name.partition("(")[0]: step for step in found.passes}
    assert steps["fuse"].added["fused"] == 1
    assert steps["fuse"].before > steps["fuse"].after == len(found.optimized)
    assert "+1 fused" in steps["fuse"].change
    assert len(found.program) == found.passes[0].before


def test_a_pass_that_changes_operands_only_is_a_change():
    f = parse("lambda %0 { %1 = exp(%0); %2 = add(%1, 0); return %1 }")
    g = parse("lambda %0 { %1 = exp(%0); %2 = add(%0, 0); return %1 }")

    assert "other operands or bodies" == PassReport.from_programs("a", f, g, 0.0).change
    assert "" == PassReport.from_programs("a", f, parse(lt.dumps(f)), 0.0).change


def test_every_bind_has_a_time_and_the_size_of_its_result():
    found = explain(jit(net), X, W)

    assert all(bind.calls == 1 and bind.seconds > 0 for bind in found.binds)
    (product,) = [bind for bind in found.binds if "matmul" in bind.text][:1]
    assert 96 == product.bytes
    assert "test_explanation.py" in product.source
    assert any(bind.depth == 1 for bind in found.binds)  # inside the fused group
    assert found.seconds > 0


def test_an_explanation_prints_as_text_and_as_html():
    found = explain(jit(net), X, W)

    for word in ("net(float64[3, 4]", "fuse", "matmul", "it is the first call", "new bytes"):
        assert word in str(found)
    assert "<table>" in found._repr_html_()
    assert "&gt;" in found._repr_html_()


def test_programs_and_plain_functions_can_be_explained():
    fn = lt.trace(net, X, W)

    assert len(fn) == len(explain(fn, X, W).program)
    assert "net" == explain(net, X, W).function
    assert len(fn) == len(explain(lt.compile(fn), X, W).program)


def test_the_explanation_of_a_call_with_variables_shows_its_graphs():
    w = Variable(W, requires_grad=True)

    found = explain(jit(net), X, w)

    assert "requires grad" in found.arguments
    assert "create_autodiff_subgraphs" in [step.name for step in found.passes]
    assert "differentiable_graph" in str(found)
    assert "0 of its plans made" in found.summary[-1]
    fast = jit(net)
    fast(X, w)[0].backward()
    assert "1 of its plans made" in explain(fast, X, w).summary[-1]
    assert "1 of its plans made" in repr(fast.debug_state().plans[0].plan)


def test_the_executors_of_gradients_are_shown():
    w = Variable(W, requires_grad=True)
    fast = jit(net)
    out = fast(X, w)[0]
    assert () == fast.debug_state().plans[0].gradients
    out.backward()

    (state,) = fast.debug_state().plans[0].gradients

    lt.check(state.graph)
    assert fast.debug_state().plans[0].optimized.binds[0].attrs["f"] is state.forward
    assert (False, True) == state.wanted
    assert 1 == len(state.plans)
    for text in (fast.debug_state(), explain(fast, X, w), explain(fast, X, w)._repr_html_()):
        assert "executor of a gradient" in str(text)


def test_a_program_with_effects_runs_once(capsys):
    def f(x):
        lt.debug.print("{}", x.sum())
        return x * 2

    found = explain(jit(f), X)

    assert 1 == len(capsys.readouterr().out.splitlines())
    assert "effects" in str(found)


def test_a_long_program_lists_its_slowest_binds():
    def f(x):
        for _ in range(50):
            x = x @ W
        return x

    text = str(explain(jit(f), X))

    assert "the 40 slowest binds of 51" in text  # the weights are a constant


def test_binds_in_the_body_of_a_loop_count_their_runs():
    def f(x):
        return lt.fori_loop(0, 100, lambda i, c: np.sin(c @ W) @ W, x)

    found = explain(jit(f), X)

    assert any(bind.calls == 100 for bind in found.binds) or len(found.binds) > 5


def test_methods_and_partials_can_be_explained():
    class Scale:
        def __init__(self):
            self.weight = np.arange(3.0)

        @jit
        def forward(self, x):
            return self.weight * x

    assert "mul" in str(explain(Scale().forward, np.ones(3)))
    assert "mul" in str(explain(jit(functools.partial(np.multiply, np.ones(3))), np.ones(3)))


def test_arguments_are_named_as_the_caller_names_them():
    @jit
    def step(cfg, x, *rest, scale=1.0):
        return x * cfg["lr"] if cfg["mode"] == "a" else -x * scale + sum(rest)

    def reason(*args, **kwargs):
        return explain(step, *args, **kwargs).reason

    step({"mode": "a", "lr": 1.0}, X, 2.0, scale=1.0)
    assert reason({"mode": "b", "lr": 1.0}, X, 2.0, scale=1.0) == "cfg[\"mode\"] is 'b', was 'a'"
    assert "x, the second argument, is float32" in reason(
        {"mode": "b", "lr": 1.0}, X.astype("f4"), 2.0, scale=1.0
    )
    assert "the third argument is int64*[]" in reason(
        {"mode": "b", "lr": 1.0}, X.astype("f4"), 2, scale=1.0
    )
    assert "scale is int64*[]" in reason({"mode": "b", "lr": 1.0}, X.astype("f4"), 2, scale=1)
    assert 'cfg["lr"] is int64*[]' in reason({"mode": "b", "lr": 1}, X.astype("f4"), 2, scale=1)


def test_attributes_are_named_as_they_are_written():
    class Point(NamedTuple):
        x: np.ndarray
        mode: str

    @dataclasses.dataclass
    class Options:
        rate: float
        inner: Point

    class Model:
        def __init__(self):
            self.rate, self.weights, self.name = 1.0, [X], "a"

        @jit
        def forward(self, x):
            return self.rate * self.weights[0] * x

    model, options = Model(), Options(1.0, Point(X, "a"))
    scaled = jit(lambda options, x: x * options.rate)
    model.forward(X)
    model.rate, model.name = 2, "b"
    scaled(options, X)
    other = Options(1.0, Point(X, "b"))

    assert "self.rate is 2, was 1.0; self.name is 'b', was 'a'" == explain(model.forward, X).reason
    assert "options.inner.mode is 'b', was 'a'" == explain(scaled, other, X).reason
    model.weights = (X,)
    assert re.search("self.weights is .*tuple, was .*list", explain(model.forward, X).reason)


def test_arguments_that_nest_in_another_way_are_shown():
    fast = jit(lambda x, y=None, **options: x)
    fast(X, {"a": X})

    assert "its arguments nest as (*, (*, *)), earlier as (*, {'a': *})" == (
        explain(fast, X, (X, X)).reason
    )
    assert "its arguments nest as (*, None), {'k': *}, earlier as (*, (*, *))" == (
        explain(fast, X, None, k=X).reason
    )


def test_the_reason_why_calls_that_require_grad_have_no_plan_for_all_sizes_is_shown():
    fast = jit(np.tanh)
    fast(Variable(X[0], requires_grad=True))

    assert (
        "an argument requires grad"
        == explain(fast, Variable(X[0, :3], requires_grad=True)).why_static_sizes
    )


def test_the_reason_why_there_is_no_plan_for_all_sizes_is_shown():
    @jit
    def alternating(x):
        return sum(x[i] * (-1) ** i for i in range(x.shape[0]))

    first = explain(alternating, X[0])
    second = explain(alternating, X[0, :3])

    assert not first.why_static_sizes
    assert re.search(
        r"test_explanation.py:\d+ needs the number x.shape\[0\]", second.why_static_sizes
    )
    assert f"no plan for all sizes: {second.why_static_sizes}" in str(second)
    assert not explain(jit(np.tanh), X[0]).why_static_sizes


def test_a_function_that_compiles_again_and_again_warns_once_with_the_line():
    @jit
    def alternating(x):
        return sum(x[i] * (-1) ** i for i in range(x.shape[0]))

    @jit
    def sliced(x, n):
        return x[:n]

    for f, args, compiles, told in (
        (alternating, [(np.ones(n),) for n in range(3, 23)], 6, "needs the number x\\.shape"),
        (sliced, [(np.ones(30), n) for n in range(20)], 4, "guard failed at .*test_explanation"),
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for given in args:
                f(*given)

        (warning,) = found
        assert warning.filename == __file__
        assert re.search(f"compiled {compiles} times, .*(?s:.*){told}", str(warning.message))


def test_a_function_that_compiles_for_few_of_its_calls_does_not_warn():
    f = jit(lambda x, mode: x * len(mode))
    for mode in map(str, range(15)):
        for _ in range(5):
            f(X, mode)


@pytest.mark.filterwarnings("ignore:.* was compiled")
def test_a_function_that_runs_as_python_says_so():
    f = lt.jit(lambda n: float(sum(range(n))))
    for n in range(60):
        f(n)

    assert "calls with such arguments run the Python function" in str(lt.explain(f, 5))
