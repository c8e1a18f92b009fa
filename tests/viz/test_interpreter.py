"""The interpreter of explorer pages against ``run_forward``, on the samples of all operations.

It runs in Node.js, or else in Chromium.
"""

import json
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import Undef
from letir.eval.evaluator import run_flat
from letir.testing import SAMPLES
from letir.testing.samples.sample import applied_program
from letir.viz.explorer_page.page_file import INTERPRETER, script_text
from letir.viz.explorer_page.run_code import CodeWriter, NotShown, array_json
from tests.viz.browser import CHROMIUM, found_in

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(
    NODE is None and CHROMIUM is None, reason="no JavaScript: install Debian's nodejs or chromium"
)
# what comes back for a case: ["done", results], ["unsupported", why] or ["failed", why]
RUN = """
const exactText = (x) => (Object.is(x, -0) ? "-0" : String(x));
function outcome({ code, parts, args }) {
  try {
    const results = new Interpreter(parts).run(code, args.map(arrayFrom));
    return ["done", results.map((x) => [x.dtype, x.shape, Array.from(x.data, exactText)])];
  } catch (error) {
    return [error instanceof Unsupported ? "unsupported" : "failed", String(error.stack)];
  }
}
"""
DTYPES = ("float64", "float32", "int64", "int32", "bool")
# enough to follow a small model and its gradient
EXPECTED = """
add sub mul div power neg abs sign sqrt exp log sin cos tanh maximum minimum where clip cast equal
less greater logical_and isnan floor remainder floor_divide sum mean max min prod any all argmax
cumsum sum_to_size matmul dot einsum broadcast_to reshape transpose concatenate stack split index
index_set index_add assemble take sort zeros ones full constant arange eye tril flip roll pad
expand_dims squeeze softmax logsumexp relu sigmoid linear var std cond fori_loop scan while_loop
layer_norm cross_entropy mse_loss quotient diagonal trace outer inner tensordot
conv conv_transpose conv_weight unfold fold max_pool
"""


def outcomes(cases: list[dict]) -> list[list]:
    """What the interpreter does with each case."""
    text = json.dumps(cases)
    if NODE is not None:
        more = f'{RUN}\nconst cases = JSON.parse(require("fs").readFileSync(0, "utf8"));\n'
        more += "process.stdout.write(JSON.stringify(cases.map(outcome)));\n"
        script = script_text(INTERPRETER, more)
        done = subprocess.run(
            [NODE, "-e", script],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            timeout=1200,
        )
        return json.loads(done.stdout)
    script = script_text(INTERPRETER, f"{RUN}\nwindow.outcomes = {text}.map(outcome);")
    page = f"<html><head></head><body><script>{script}</script></body></html>"
    return found_in(page, "return window.outcomes;")


def case_of(program: lt.Lambda, args: list) -> dict:
    """A case: the code of a program with arguments. Raises NotShown."""
    writer = CodeWriter()
    code = writer.code(program)
    return {"code": code, "parts": writer.parts, "args": [array_json(np.asarray(a)) for a in args]}


def expect_same(found: list, expected, *, is_single: bool = False) -> None:
    """Raise AssertionError unless the interpreter found what ``run_forward`` gives.

    ``is_single``: to single precision, for a program that computes in float32.
    """
    expected = np.asarray(expected)
    assert found[:2] == [expected.dtype.name, list(expected.shape)]
    values = np.array([float(text.replace("Infinity", "inf")) for text in found[2]])
    values = values.reshape(expected.shape)
    if expected.dtype.kind == "f":
        is_double = expected.dtype == np.float64 and not is_single
        rtol = 1e-12 if is_double else 4e-6
        np.testing.assert_allclose(values, expected.astype(float), rtol=rtol, atol=rtol)
        assert (np.signbit(values) == np.signbit(expected))[expected == 0].all() or not is_double
    else:
        np.testing.assert_array_equal(values, expected.astype(float))


@cache
def sample_outcomes() -> list[tuple[str, dict, list, tuple]]:
    """(operation, attributes, outcome, expected results) for each sample of common dtypes."""
    cases, about = [], []
    for name, samples in SAMPLES.items():
        for sample in samples:
            if any(arg is Undef for arg in sample.args):
                continue
            program, args = applied_program(PRIMITIVES[name], sample)
            dtypes = {np.asarray(arg).dtype.name for arg in args}
            if not dtypes <= set(DTYPES):
                continue
            try:
                cases.append(case_of(program, args))
            except NotShown:
                continue
            with np.errstate(all="ignore"):
                try:
                    about.append((name, dict(sample.attrs), run_flat(program, list(args))))
                except Exception:  # a sample of an error
                    cases.pop()
    return [(name, attrs, o, r) for (name, attrs, r), o in zip(about, outcomes(cases), strict=True)]


def test_results_are_those_of_run_forward():
    """For every sample that the interpreter computes; it never computes another value."""
    wrong = []
    for name, attrs, (state, found), expected in sample_outcomes():
        try:
            assert state != "failed", found
            if state == "done":
                assert len(found) == len(expected)
                for one, other in zip(found, expected, strict=True):
                    expect_same(one, other)
        except AssertionError as error:
            wrong.append(f"{name} {attrs}: {error}")

    assert not wrong, "\n".join(wrong)


def test_the_usual_operations_run():
    done = {name for name, _, (state, _), _ in sample_outcomes() if state == "done"}

    assert set(EXPECTED.split()) - done == set()
    assert len(done) > 200


def forward(w, b, x, y):
    h = np.maximum(x @ w + b, 0.1 * (x @ w))
    return ((h - y) ** 2).mean() + np.log1p(np.exp(-h)).sum(axis=0)[0]


def statistics(x):
    centred = x - x.mean(axis=0, keepdims=True)
    return np.where(centred > 0, centred, 0.0).std() + np.sort(x, axis=0)[::2, 1:].sum()


def written(x):
    out = np.zeros((3, 4))
    out[1:, ::2] = x[:2, :2]
    out[0] += x.T.ravel()[:4]
    return np.einsum("ij,kj->ik", out, out).trace() / np.linalg.norm(x)


def looped(x):
    return lt.fori_loop(0, 4, lambda i, c: np.sin(c) + 0.1 * i, x).sum()


def float32s(x):
    return (np.tanh(x.astype(np.float32)) * 0.1 + x.astype(np.float32)).sum()


R = np.random.default_rng(1)
X = R.normal(size=(4, 3))
PROGRAMS = {
    forward: (R.normal(size=(3, 2)), R.normal(size=2), X, R.normal(size=(4, 2))),
    statistics: (X,),
    written: (X,),
    looped: (X,),
    float32s: (X,),
}


def test_gradient_programs_run_as_in_python():
    cases, expected = [], []
    for f, args in PROGRAMS.items():
        program = lt.differentiate(lt.trace(f, *args)).joined()
        cts = [np.ones(p.type.shape, p.type.dtype) for p in program.params[len(args) :]]
        cases.append(case_of(program, [*args, *cts]))
        expected.append(run_flat(program, [*args, *cts]))

    for f, (state, found), results in zip(PROGRAMS, outcomes(cases), expected, strict=True):
        assert state == "done", found
        for one, other in zip(found, results, strict=True):
            expect_same(one, other, is_single=f is float32s)


def test_numbers_of_single_precision_are_rounded():
    f = lt.trace(lambda x: x.astype(np.float32).astype(float), np.ones(2))
    x = np.array([0.1, 1e-50])
    ((state, found),) = outcomes([case_of(f, [x])])

    assert state == "done"
    assert [float(text) for text in found[0][2]] == f(x).tolist()


def test_what_would_be_another_number_is_refused():
    """Integers beyond those that JavaScript represents, and a path that was not recorded."""
    large = lt.trace(lambda n: n * n, np.int64(2))
    path = lt.trace(lambda x: x * 2 if x.sum() > 0 else x, np.ones(2))
    huge, other = outcomes([case_of(large, [np.int64(2**40)]), case_of(path, [-np.ones(2)])])

    assert huge[0] == "unsupported"
    assert "beyond" in huge[1]
    assert other[0] == "failed"
    assert "the program was recorded where this was" in other[1]
