"""Views and pictures as pages, opened one by one and searched by axe for barriers."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import letir as lt
from letir.viz.view_page import html_page
from tests.viz.browser import needs_chromium
from tests.viz.devtools import Page, kept_browser
from tests.viz.views import ARGS, loss

pytestmark = needs_chromium


def jitted() -> Callable:
    """A function with two plans, each with a guard."""
    step = lt.jit(lambda x: np.sin(x) if x.sum() > 0 else np.cos(x))
    step(np.ones(3)), step(-np.ones(3))
    return step


VIEWS = {
    "gradient": lambda: lt.differentiate(lt.trace(loss, *ARGS)),
    "jitted function": jitted,
    "explanation": lambda: lt.explain(lt.jit(loss), *ARGS),
    "residuals": lambda: lt.explain_residuals(lt.trace(loss, *ARGS)),
    "history": lambda: loss(*map(lt.Variable, ARGS)),
    "graph": lambda: lt.viz.graph(lt.trace(loss, *ARGS)),
    "memory": lambda: lt.viz.memory(lt.trace(loss, *ARGS)),
    "live ranges": lambda: lt.viz.live_ranges(lt.trace(loss, *ARGS)),
    "profile": lambda: lt.viz.profile(loss, *ARGS),
    "roofline": lambda: lt.viz.roofline(loss, *ARGS),
    "passes": lambda: lt.viz.diff(lt.grad(lt.trace(loss, *ARGS))),
}


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", VIEWS)
def test_axe_finds_nothing(name, scheme, tmp_path):
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python brings axe-core")
    html = html_page(VIEWS[name]()._repr_html_(), name)
    page = Page(kept_browser(), html, tmp_path, scheme=scheme)
    page.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    page.run(Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8"))

    found = page.run("axe.run().then(r => r.violations.map(v => [v.id, v.nodes[0].html]))")

    assert [] == found + page.faults
    page.close()
