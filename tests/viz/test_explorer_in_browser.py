"""The explorer page in Chromium: what it shows, and what pointers and keys do."""

import linecache

import numpy as np
import pytest

import letir as lt
from tests.viz.browser import needs_chromium
from tests.viz.devtools import Page, browser
from tests.viz.test_explorer import ARGS, loss
from tests.viz.views import EVIL, evil_program

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def chromium():
    with browser() as started:
        yield started


@pytest.fixture
def opened(chromium, tmp_path):
    """Opens pages, and expects that nothing went wrong in them."""
    pages = []

    def open_page(page, **settings) -> Page:
        pages.append(Page(chromium, page.html, tmp_path, **settings))
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

    assert page.texts(".def") == ["%4:h"]
    assert page.texts(f"{GRID} .use") == ["%4:h", "%4:h"]
    assert len(page.texts(".use")) > 2  # those of the backward program
    assert page.texts(".status")[0].startswith("%4:h float64[4, 2]: read by ")


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
