"""The explorer page: what it says of programs, without a browser."""

import functools
import html
import json
import re

import numpy as np
import pytest

import letir as lt
from letir.errors import DTypeError, LetirError
from letir.executor.compiled import kernel_mode
from letir.executor.default_pipeline import optimize_program
from letir.viz.explorer_page.kernel_code import kernel_content
from tests.viz.views import EVIL, evil_program


def loss(w, x):
    h = np.tanh(x @ w)
    return (h * np.exp(h)).sum()


ARGS = np.ones((3, 2)), np.ones((4, 3))


def content_of(page) -> dict:
    """The JSON of a page."""
    text = re.search(r'<script type="application/json" id="program">(.*?)</script>', page.html)[1]
    return json.loads(text)


def test_a_function_is_recorded_and_differentiated():
    page = lt.viz.explorer(loss, *ARGS)

    assert str(page) == ("explorer of loss: 2 parameters, 5 binds, 1 result; backward: 12 binds")


def test_each_kind_of_program_has_a_page():
    f = lt.trace(loss, *ARGS)
    step = lt.jit(loss)
    step(*ARGS)
    shown = [f, lt.differentiate(f), lt.compile(f), step]

    assert [content_of(lt.viz.explorer(one))["program"]["forward"] for one in shown] == [5] * 4


def test_locals_have_the_numbers_of_the_text():
    f = lt.trace(lambda x: lt.fori_loop(0, 3, lambda i, c: np.sin(c) + i, x), np.ones(2))
    content = content_of(lt.viz.explorer(f, gradient=False))
    (loop,) = [content["rows"][row] for row in content["program"]["rows"]]
    ((name, params, rows, results, left),) = loop[5]

    numbers = [*loop[0], *params, *[n for row in rows for n in row[0]]]
    assert [f"%{n}" for n in numbers] == re.findall(r"(%\d+)(?::\w+)?: ", str(f))[1:]
    assert (name, results, left) == ("body", rows[-1][0], 0)


def test_residuals_are_the_values_that_the_backward_program_reads():
    content = content_of(lt.viz.explorer(loss, *ARGS))
    program = content["program"]
    forward = [content["rows"][row] for row in program["rows"][: program["forward"]]]
    names = [content["texts"][row[1]] for row in forward]
    made = {row[0][0]: name for row, name in zip(forward, names, strict=True)}

    kept = [(made.get(local, "parameter"), size) for local, size in program["kept"]]
    assert sorted(kept) == [("exp", 64), ("parameter", 48), ("parameter", 96), ("tanh", 64)]


def test_the_lines_of_the_function_are_in_the_page():
    content = content_of(lt.viz.explorer(loss, *ARGS))
    ((first, texts),) = content["files"][0]["pieces"]

    assert texts[0] == "def loss(w, x):"
    file, line, last = content["lines"][0]
    assert texts[line - first] == "    h = np.tanh(x @ w)"
    assert (file, line) == (0, last)


def test_a_program_without_derivative_says_why():
    page = lt.viz.explorer(lt.trace(lambda x: x > 0, np.ones(3)))

    assert "backward" not in str(page)
    assert content_of(page)["program"]["reason"] == (
        "No result depends differentiably on a parameter."
    )


def test_kernels_that_are_switched_off_are_not_shown(monkeypatch):
    monkeypatch.setenv("LETIR_KERNELS", "off")
    kernels = content_of(lt.viz.explorer(loss, *ARGS))["kernels"]

    assert kernels == {"kernels": [], "reason": "Kernels are switched off by LETIR_KERNELS."}


def test_texts_of_a_program_cannot_end_the_script():
    page = lt.viz.explorer(evil_program())

    assert page.html.count("<script") == page.html.count("</script>") == 2
    assert EVIL not in page.html
    assert any(EVIL[:20] in text for text in content_of(page)["texts"])


def test_a_page_loads_nothing():
    text = lt.viz.explorer(loss, *ARGS).html

    assert "default-src 'none'" in text
    loading = r"(?:src|href)\s*=|url\(|@import|fetch\(|https?://(?!www\.w3\.org/2000/svg)"
    assert not re.findall(loading, text)


def test_other_values_are_refused():
    with pytest.raises(DTypeError, match=r"explorer shows a program, .*found int"):
        lt.viz.explorer(3)


def test_pages_are_html_files(tmp_path):
    page = lt.viz.explorer(loss, *ARGS)
    page.save(tmp_path / "page.html")

    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    with pytest.raises(LetirError, match=r"end the name with \.html"):
        page.save(tmp_path / "page.svg")


def runs_of(step: dict) -> list[tuple[str, list[int]]]:
    """(mark, rows) of a step of the passes."""
    return [(" ~+-"[mark], [*range(row, row + n)]) for mark, row, n in step["runs"]]


def test_passes_show_what_each_of_them_changes():
    f = lt.trace(lambda x: np.exp(x) * np.exp(x) + 0.0 * x, np.ones(3))
    content = content_of(lt.viz.explorer(f, gradient=False))
    steps = {step["name"]: step for step in content["passes"]["steps"]}
    shared = steps["common_subexpressions"]
    exp, again, product, *_ = content["program"]["rows"]
    rows = [(mark, row) for mark, rows in runs_of(shared) for row in rows]

    assert [mark for mark, row in rows if row in (exp, again, product)] == [" ", "-", "-"]
    assert "".join([mark for mark, row in rows])[:4] == " --~"  # what is replaced stands before
    ((changed,),) = [rows for mark, rows in runs_of(shared) if mark == "~"]
    assert content["rows"][changed][0] == content["rows"][product][0]  # the same binder
    assert content["rows"][changed][2] == [1, 1]
    assert shared["change"] == "-1 exp"


def test_binds_that_a_pass_drops_at_the_end_are_marked():
    f = lt.parse("""lambda %0: float64[3] {
      %1: float64[3] = sin(%0); %2: float64[3] = exp(%0); return %1 }""")
    content = content_of(lt.viz.explorer(f, gradient=False))
    (step,) = [step for step in content["passes"]["steps"] if step["change"] == "-1 exp"]

    assert [mark for mark, rows in runs_of(step) for row in rows] == [" ", "-"]


def test_steps_of_passes_are_the_programs_that_the_passes_return():
    f = lt.trace(loss, *ARGS)
    content = content_of(lt.viz.explorer(f))
    whole = lt.differentiate(f).joined()
    programs = []
    optimize_program(
        whole,
        kernels=kernel_mode(None, optimize=True, exact=False),
        observe=lambda name, before, after, seconds: programs.append((name, after)),
    )

    assert content["passes"]["count"] == len(programs)
    for step in content["passes"]["steps"]:
        rows = [row for mark, rows in runs_of(step) if mark != "-" for row in rows]
        names = [content["texts"][content["rows"][row][1]] for row in rows]
        assert (step["name"], names) in [
            (name, [bind.op.name for bind in after.binds]) for name, after in programs
        ]


def test_a_pass_that_makes_a_new_program_keeps_its_numbers():
    def renamed(fn):
        return lt.parse(lt.dumps(fn))

    lt.passes.register("before", renamed)
    try:
        content = content_of(lt.viz.explorer(lt.trace(loss, *ARGS), gradient=False))
    finally:
        lt.passes.unregister("before", renamed)

    assert "renamed" not in [step["name"] for step in content["passes"]["steps"]]


def test_memory_is_that_of_the_plan_bind_by_bind():
    f = lt.trace(lambda x: np.sort(np.sin(x)).sum(), np.ones(1000))
    memory = content_of(lt.viz.explorer(f, gradient=False))["memory"]

    assert memory["live"] == [8000, 16000, 8000]
    assert memory["arrays"] == [[0, 1, 8000], [1, 2, 8000]]


def test_memory_of_results_constants_and_guards():
    table = np.arange(1000.0)
    f = lt.trace(lambda x: x * 2.0 * table if (x > 0).all() else x, np.ones(1000))
    memory = content_of(lt.viz.explorer(f, gradient=False))["memory"]

    names = [bind.op.name for bind in f.binds]
    assert names == ["greater", "all", "guard", "mul", "constant", "mul"]
    assert memory["live"] == [1000, 1000, 1000, 8000, 8000, 16000]
    # the result exists after all binds
    assert memory["arrays"] == [[0, 1, 1000], [3, 5, 8000], [5, 6, 8000]]


def test_memory_of_symbolic_sizes_is_not_known():
    f = lt.trace(np.sin, lt.ShapeDtype(("n",)))
    memory = content_of(lt.viz.explorer(f))["memory"]

    assert "n" in memory["reason"]


def test_kernels_show_their_loops(monkeypatch):
    pytest.importorskip("llvmlite", reason="the extra fast makes kernels")
    monkeypatch.setenv("LETIR_KERNELS", "on")
    f = lt.trace(lambda x: np.sqrt(x * x + 1.0), np.ones(20_000))
    (kernel,) = content_of(lt.viz.explorer(f, gradient=False))["kernels"]["kernels"]

    assert "sqrt" in kernel["loops"]
    assert kernel["loops"].startswith("kernel ")


def test_without_llvmlite_the_page_says_so(monkeypatch):
    monkeypatch.setenv("LETIR_KERNELS", "on")
    monkeypatch.setattr("letir.viz.explorer_page.kernel_code.has_compiler", lambda: False)
    kernels = content_of(lt.viz.explorer(loss, *ARGS))["kernels"]

    assert kernels["reason"].startswith("llvmlite is not installed")


def test_kernels_of_a_long_program_are_left_out(monkeypatch):
    pytest.importorskip("llvmlite", reason="the extra fast makes kernels")
    monkeypatch.setenv("LETIR_KERNELS", "on")
    binds = "".join([f"%{i + 1}: float64[] = neg(%{i});" for i in range(5001)])
    f = lt.parse(f"lambda %0: float64[] {{ {binds} return %5001 }}")

    assert kernel_content(f)["reason"] == "Left out: the program has 5,001 binds."


@pytest.mark.parametrize("binds", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_long_program_has_a_small_page(binds):
    """With its gradient, at most 5 MB for ten thousand binds."""

    def long(x):
        for _ in range(binds // 4):
            x = x + 0.1 * np.tanh(x * x)
        return x.sum()

    page = lt.viz.explorer(long, np.ones(4))
    content = content_of(page)

    assert content["program"]["forward"] > binds
    assert len(page.html.encode()) < 500 * (binds + 1_000)


def test_a_run_stores_the_arguments_and_small_values():
    args = np.linspace(0, 1, 6).reshape(3, 2), np.ones((4, 3))
    run = content_of(lt.viz.explorer(loss, *args))["run"]

    assert run["reason"] == run["note"] == run["why"] == ""
    assert run["args"][0] == ["float64", [3, 2], args[0].ravel().tolist()]
    assert run["args"][2] == ["float64", [], [1.0]]  # the cotangent
    (tanh,) = run["values"][1]
    assert tanh == ["float64", [4, 2], np.tanh(args[1] @ args[0]).ravel().tolist()]
    assert [step[0] for step in run["code"]["steps"][:2]] == ["matmul", "tanh"]


def test_arguments_are_made_up_if_none_are_given():
    f = lt.parse("lambda %0: float64[3], %1: int64[] { %2: float64[3] = mul(%0, %1); return %2 }")
    run = content_of(lt.viz.explorer(f))["run"]

    assert [array[:2] for array in run["args"]] == [
        ["float64", [3]],
        ["int64", []],
        ["float64", [3]],
    ]
    assert run["note"].startswith("The arguments are made up")
    assert run["values"][0][0][:2] == ["float64", [3]]


def test_composites_of_a_stranger_run():
    f = lt.trace(lambda x: lt.nn.relu(x).sum(), lt.ShapeDtype((2,)))

    run = content_of(lt.viz.explorer(f, gradient=False))["run"]
    (relu,), (total,) = run["values"]  # not those of the parts
    assert relu[2] == [max(x, 0.0) for x in run["args"][0][2]]
    assert total[2] == [sum(relu[2])]


def test_a_loop_of_a_stranger_does_not_run():
    def forever(x):
        return lt.while_loop(lambda c: c.sum() < np.inf, lambda c: c * 0.5, x)

    f = lt.trace(forever, lt.ShapeDtype((2,)))
    run = content_of(lt.viz.explorer(f, gradient=False))["run"]

    assert run["values"] is None
    assert run["why"] == "Not run here: the arguments are made up."


def test_effects_do_not_happen_again(capsys):
    def printing(x):
        lt.debug.print("x", x)
        return x * 2

    f = lt.trace(printing, np.ones(2))
    capsys.readouterr()
    run = content_of(lt.viz.explorer(f, np.ones(2)))["run"]

    assert "print has an effect" in run["why"]
    assert capsys.readouterr().out == ""


def test_a_program_that_is_too_large_to_run_says_so():
    f = lt.trace(lambda x: np.sin(x).sum(), np.ones(30_000))

    assert content_of(lt.viz.explorer(f))["run"]["reason"].startswith("The arguments have 30,001")


def test_numbers_that_json_lacks_are_texts():
    f = lt.trace(np.log, np.ones(2))
    run = content_of(lt.viz.explorer(f, np.array([0.0, np.nan])))["run"]

    assert run["args"][0][2] == [0.0, "nan"]
    assert run["values"][0][0][2] == ["-inf", "nan"]


def test_an_argument_of_another_kind_is_named():
    class DeviceArray:
        shape, dtype = (3,), np.dtype(float)

    run = content_of(lt.viz.explorer(lt.trace(np.sin, np.ones(3)), DeviceArray()))["run"]

    assert run["reason"] == "An argument is a DeviceArray, not an array of numbers."


def test_a_decorated_function_is_recorded_with_its_decorator():
    @functools.wraps(loss)
    def doubled(w, x):
        return 2 * loss(w, x)

    assert "6 binds" in str(lt.viz.explorer(doubled, *ARGS))
    assert "5 binds" in str(lt.viz.explorer(lt.jit(loss), *ARGS))


def test_a_notebook_shows_the_page_in_a_frame_that_cannot_reach_it():
    page = lt.viz.explorer(evil_program())
    frame = page._repr_html_()

    assert html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1]) == page.html
    assert 'sandbox="allow-scripts"' in frame
    assert frame.count("<") == 2  # of the frame itself
