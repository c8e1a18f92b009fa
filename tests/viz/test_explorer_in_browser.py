"""The explorer page in Chromium: what it shows, and what pointers and keys do."""

import linecache
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import letir as lt
from tests.viz.browser import needs_chromium
from tests.viz.devtools import Page, kept_browser
from tests.viz.test_explorer import ARGS, loss
from tests.viz.views import EVIL, evil_program

pytestmark = needs_chromium


@pytest.fixture
def opened(tmp_path):
    """Opens pages, and expects that nothing went wrong in them."""
    pages = []

    def open_page(page, **settings) -> Page:
        pages.append(Page(kept_browser(), page.html, tmp_path, **settings))
        return pages[-1]

    yield open_page
    faults = [fault for page in pages for fault in page.faults]
    for page in pages:
        page.close()
    assert faults == []


PROGRAM = "[role=grid]"
GRID = '[aria-label="forward program"][role=grid]'
ROWS = f"{GRID} .space .row"


def names(page: Page, selector: str) -> list[str]:
    """The first cells of the rows that a selector finds."""
    return page.texts(f"{selector} > :first-child")


def test_forward_and_backward_are_side_by_side(opened):
    page = opened(lt.viz.explorer(loss, *ARGS))

    assert names(page, ROWS) == ["%0:w", "%1:x", "%3", "%4:h", "%5", "%6", "%7", ""]
    assert page.texts("h2")[:2] == ["forward program, 5 binds", "backward program, 12 binds"]


def test_pointing_at_a_residual_lights_up_both_programs(opened):
    page = opened(lt.viz.explorer(loss, *ARGS))
    page.point(f"{ROWS} b[data-v='4']")

    assert page.texts("#panel-program .def") == ["%4:h"]
    assert page.texts(f"{GRID} .use") == ["%4:h", "%4:h"]
    assert len(page.texts("#panel-program .use")) > 2  # those of the backward program
    assert page.texts(".status")[0].startswith("%4:h float64[4, 2]: read by ")


def test_the_source_is_shown_before_a_bind_is_chosen(opened):
    page = opened(lt.viz.explorer(loss, *ARGS))

    assert any("np.tanh" in line for line in page.texts(".code-line"))
    assert page.texts(".code-line.here") == []


def test_a_line_counts_its_residuals(opened):
    def running(x):
        last, states = lt.scan(lambda s, v: (np.sin(s * v), s), 1.0, x)
        return last * states.sum()

    page = opened(lt.viz.explorer(running, np.ones(3)))

    (counted,) = [text for text in page.texts(f"{ROWS} .kept") if text[0].isdigit()]
    assert counted == "3 kept 56 B"


def test_a_search_leaves_the_lines_that_match(opened):
    page = opened(lt.viz.explorer(loss, *ARGS))
    page.press("/")
    page.type("TANH")

    assert names(page, ROWS) == ["%4:h"]
    page.press("Enter", "Escape")
    assert len(names(page, ROWS)) == 8
    assert names(page, f"{GRID} .here") == ["%4:h"]  # where the search was left


def test_markup_in_names_and_lines_does_not_run(opened):
    page = opened(lt.viz.explorer(evil_program()))
    page.run("window.alert = text => console.error(text)")
    page.run("document.querySelector('[role=grid]').focus()")
    page.press(*["ArrowDown"] * 4)

    assert EVIL[:30] in page.texts(f"{PROGRAM} .here")[0]
    assert page.run("document.querySelectorAll('img, body script').length") == 2  # its own


def test_markup_in_a_source_file_does_not_run(opened):
    file = "<img src=x onerror=alert(1)>.py"
    lines = [f"def f(x): # {EVIL}\n", f"    return np.sin(x) # {EVIL}\n"]
    linecache.cache[file] = (0, None, lines, file)
    scope = {"np": np}
    exec(compile("".join(lines), file, "exec"), scope)
    page = opened(lt.viz.explorer(scope["f"], np.ones(2)))
    page.run("document.querySelector('[role=grid]').focus()")
    page.press("ArrowDown")

    assert page.texts(".code-line.here")[0].endswith(EVIL)
    assert page.run("document.querySelectorAll('img').length") == 0


def test_the_memory_moves_with_the_cursor(opened):
    page = opened(lt.viz.explorer(loss, *ARGS))
    place = "+document.querySelector('.cursor-line').getAttribute('x1')"
    page.run(f"document.querySelector('{GRID}').focus()")
    page.press("ArrowDown", "ArrowDown")
    first = page.texts(".caption")[0], page.run(place)
    page.press("ArrowDown")
    second = page.texts(".caption")[0], page.run(place)

    assert first[0].startswith("64 B here, ")
    assert second[0].startswith("128 B here, ")
    assert first[1] < second[1]
    assert page.texts(".held h2") == ["2 arrays here"]


def test_pointing_into_the_memory_moves_the_cursor(opened):
    page = opened(lt.viz.explorer(loss, *ARGS))
    page.point(".memory svg", click=True)  # near its left end

    assert names(page, f"{GRID} .here") == ["%3"]


def test_passes_are_scrubbed_by_a_slider_and_by_their_names(opened):
    page = opened(
        lt.viz.explorer(lambda x: (np.exp(x) * np.exp(x)).sum(), np.ones(3), gradient=False)
    )
    page.point("[role=tab]", 2, click=True)
    page.run("document.querySelector('#panel-passes input[type=range]').focus()")
    page.press("ArrowRight")

    assert page.texts("#panel-passes [aria-current]")[0].startswith("common_subexpressions")
    assert page.texts("#panel-passes h2")[0] == "common_subexpressions: 4 → 3 binds, -1 exp"
    marked = page.texts("#panel-passes .mark-sign")
    assert marked == ["−", "−", "~"]
    page.point("#panel-passes .steps button", 0, click=True)
    assert page.texts("#panel-passes .mark-sign") == []


def test_kernels_are_chosen_from_a_list(opened, monkeypatch):
    pytest.importorskip("llvmlite", reason="the extra fast makes kernels")
    monkeypatch.setenv("LETIR_KERNELS", "on")
    page = opened(lt.viz.explorer(lambda x: np.sqrt(x * x + 1.0).sum(), np.ones(20_000)))
    page.point("[role=tab]", 3, click=True)

    assert "sqrt" in page.texts("#panel-kernels pre")[0]
    assert len(page.texts("#panel-kernels .steps button")) > 0


def test_the_keyboard_alone_leads_to_everything(opened):
    page = opened(lt.viz.explorer(loss, *ARGS))
    named = "(e => e.getAttribute('aria-label') || e.textContent || e.type)(document.activeElement)"
    stops = []
    for _ in range(12):
        page.press("Tab")
        stops.append(page.run(named))

    assert stops[:4] == ["search", "Program", "forward program", "backward program"]
    assert "source" in stops


def test_enter_follows_uses_and_definitions(opened):
    page = opened(lt.viz.explorer(loss, *ARGS))
    page.run(f"document.querySelector('{GRID}').focus()")
    page.press("End", "Enter")  # from the return to the sum

    assert names(page, f"{GRID} .here") == ["%7"]
    page.press("Home", "Enter")  # from a parameter to its first use
    assert names(page, f"{GRID} .here") == ["%3"]
    assert page.texts(f"{GRID} .now") == ["%0:w"]


def test_bodies_unfold_by_the_space_bar_and_by_a_search(opened):
    f = lt.trace(lambda x: lt.fori_loop(0, 3, lambda i, c: np.cos(c) + i, x), np.ones(2))
    page = opened(lt.viz.explorer(f, gradient=False))
    grid = "[aria-label=program][role=grid]"
    page.run(f"document.querySelector('{grid}').focus()")
    folded = names(page, f"{grid} .space .row")
    page.press("ArrowDown", " ")

    assert len(names(page, f"{grid} .space .row")) == len(folded) + 3
    page.press(" ", "/")
    page.type("cos")
    assert "cos" in page.texts(f"{grid} .space .row")[0]


def test_a_long_program_is_drawn_in_part(opened):
    def long(x):
        for _ in range(2500):
            x = x + 0.1 * np.tanh(x * x)
        return x.sum()

    page = opened(lt.viz.explorer(long, np.ones(4), gradient=False))
    page.run("document.querySelector('[role=grid]').focus()")
    page.press("End")

    assert page.texts(".here")[0].startswith("return")
    assert len(page.texts(".space .row")) < 100

    page.press("/")
    page.type("tanh")

    assert page.texts("[role=search]")[0].endswith("7,500 lines")
    assert "tanh" in page.texts(".here")[0]
    assert 10 < len(page.texts(".space .row")) < 100


RUN = "#panel-run"
W = np.linspace(-1, 1, 6).reshape(3, 2)


def shown_results(page: Page) -> dict[str, str]:
    """The results in the panel "Run", by what they are."""
    return dict(
        zip(page.texts(f"{RUN} .outcomes dt"), page.texts(f"{RUN} .outcomes dd"), strict=True)
    )


def test_a_program_runs_bind_by_bind(opened):
    page = opened(lt.viz.explorer(loss, W, ARGS[1]))
    page.point("[role=tab]", 1, click=True)
    value = float(loss(W, ARGS[1]))

    assert shown_results(page)["result %7"] == f"{value:.5g}"
    page.point(f"{RUN} .plain", 0, click=True)  # start
    before = page.texts(f"{RUN} .space .row .c-line")
    page.point(f"{RUN} .plain", 2, click=True)  # step
    page.point(f"{RUN} .plain", 2, click=True)
    after = page.texts(f"{RUN} .space .row .c-line")
    assert [text for text in before if text] == before[:3]  # the parameters
    assert [text for text in after if text] == after[:5]
    assert page.texts(f"{RUN} .scrub .q") == ["2 of 17 binds, last %4:h tanh"]
    assert page.texts(f"{RUN} .numbers td")[0] == f"{np.tanh(ARGS[1] @ W)[0, 0]:.5g}"
    assert page.run(
        f"document.querySelector('{RUN} canvas').getAttribute('aria-label')"
    ).startswith("%4:h as an image of 4 rows and 2 columns")


def test_a_changed_argument_changes_the_gradient(opened):
    page = opened(lt.viz.explorer(loss, W, ARGS[1]))
    page.point("[role=tab]", 1, click=True)
    first = shown_results(page)
    page.run(f"document.querySelector('{RUN} .input-grid input').select()")
    page.type("0.5")
    changed = W.copy()
    changed[0, 0] = 0.5
    (slope, _) = lt.grad(loss, argnums=(0, 1))(changed, ARGS[1])
    found = shown_results(page)["gradient of %0:w"]

    assert found.startswith(f"[{slope[0, 0]:.5g} {slope[0, 1]:.5g} ")
    assert f"was {first['gradient of %0:w']}" in found
    page.run(f"document.querySelector('{RUN} .inputs input[type=range]').focus()")
    page.press("ArrowRight")
    assert page.run(f"document.querySelector('{RUN} .input-grid input').value") == "0.52"
    page.point(f"{RUN} .inputs .plain", click=True)
    assert shown_results(page) == first


def test_results_that_are_constants_are_shown(opened):
    page = opened(lt.viz.explorer(lambda x: (x.sum(), 2.5), np.ones(4), gradient=False))
    page.point("[role=tab]", 1, click=True)

    assert list(shown_results(page).items()) == [("result %1", "4"), ("result 2.5", "2.5")]


def test_operations_that_the_page_lacks_are_named_and_recorded_values_shown(opened):
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    page = opened(lt.viz.explorer(lambda x: np.linalg.cholesky(x).sum(), matrix, gradient=False))
    page.point("[role=tab]", 1, click=True)

    (note,) = page.texts(f"{RUN} .note")
    assert note.startswith("This page does not have cholesky. It shows the values that Python")
    assert page.texts(f"{RUN} .inputs") == []
    total = np.linalg.cholesky(matrix).sum()
    assert list(shown_results(page).values()) == [f"{total:.5g}"]


def test_a_run_that_leaves_the_recorded_path_stops_with_the_reason(opened):
    page = opened(lt.viz.explorer(lambda x: x * 2 if x > 0 else x, np.float64(1.0)))
    page.point("[role=tab]", 1, click=True)
    page.run(f"document.querySelector('{RUN} .input-grid input').select()")
    page.type("-1")

    (fault,) = page.texts(f"{RUN} .fault")
    assert "the program was recorded where this was True, now it is False" in fault


def explorers_of_odd_programs() -> dict[str, Callable]:
    """The makers of pages of programs that lack what others have, or have more."""
    x, texts = np.ones(4), {"w": np.ones(4), "b": 2.0}
    shown = lt.viz.explorer
    return {
        "untyped": lambda: shown(lt.parse("lambda %0 { %1 = exp(%0); return %1 }")),
        "nothing": lambda: shown(lt.parse("lambda { return 1.0 }")),
        "symbolic": lambda: shown(lt.trace(lambda x: (x @ x.T).sum(), lt.ShapeDtype(("n", 3)))),
        "gradient program": lambda: shown(
            lt.differentiate(lt.trace(lambda x: np.sin(x).sum(), x)).df
        ),
        "tree": lambda: shown(lambda p, *, n: (p["w"] * n).sum(), texts, n=3),
        "markup": lambda: shown(evil_program()),
        "no binds": lambda: shown(lt.parse("lambda %0: float64[] { return %0 }")),
        "constants": lambda: shown(lambda x: (x, 2.0, x.sum()), x),
        "complex": lambda: shown(lambda z: abs(z * z).sum(), 1j * x),
        "empty arrays": lambda: shown(lambda x: x * 2, np.ones((0, 3))),
        "three axes": lambda: shown(lambda x: np.tanh(x).sum(axis=1), np.ones((2, 3, 4))),
    }


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=[pytest.mark.slow] if i > 5 else [])
        for i, (name, make) in enumerate(explorers_of_odd_programs().items())
    ],
)
def test_all_tabs_of_an_odd_program_open(opened, make):
    panel = "document.querySelector('[role=tabpanel]:not([hidden])')"
    page = opened(make())
    for tab in range(4):
        page.run(f"document.querySelectorAll('[role=tab]')[{tab}].click()")
        page.run(f"{panel}?.querySelector('[role=grid]')?.focus()")
        page.press("ArrowDown", "End", "Enter")
    assert page.faults == []
    assert page.run("document.querySelectorAll('img').length") == 0


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        pytest.param((1280, 800), "light", id="wide-light"),
        pytest.param((480, 900), "dark", id="narrow-dark"),
        pytest.param((1280, 800), "dark", id="wide-dark", marks=pytest.mark.slow),
        pytest.param((480, 900), "light", id="narrow-light", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing(opened, scheme, size):
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python brings axe-core")
    page = opened(lt.viz.explorer(loss, *ARGS), scheme=scheme, size=size)
    page.run(Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8"))
    for tab in range(len(page.texts("[role=tab]"))):
        page.run(f"document.querySelectorAll('[role=tab]')[{tab}].click()")
        found = page.run("axe.run().then(r => r.violations.map(v => [v.id, v.nodes[0].html]))")

        assert found == []
