"""Settings of Sphinx: ``make docs`` builds the site into ``build/site``.

The source folder is the root of the repository, so that links between pages, notebooks and the
README are the same here and on a code host. ``site_pages.py`` makes the navigation, and
``site_figures.py`` what is drawn or recorded at build time.
"""

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the modules beside this file

import site_figures
import site_pages
from site_lexer import ProgramLexer

import letir

project = "letir"
author = "the letir developers"
release = version = letir.__version__
extensions = ["myst_nb"]
root_doc = site_pages.INDEX
include_patterns = list(site_pages.PATTERNS)
exclude_patterns = ["build", ".venv", ".git", "tests", "benchmarks"]

# Stored outputs are shown; nothing runs.
nb_execution_mode = "off"
# Anchors as on code hosts, at headings of every level.
myst_heading_anchors = 6

html_theme = "furo"
html_title = "letir"
html_show_copyright = False
html_show_sourcelink = False
html_additional_pages = {"index": "start.html"}
templates_path = ["templates"]
html_copy_source = False
html_use_index = False

# `make docs-links` visits the addresses of other sites.
linkcheck_timeout = 20


def prepare(app, name: str, source: list[str]) -> None:
    """Add navigation, figures, frames and colours of programs to a page before it is parsed."""
    if name == site_pages.INDEX:
        source[0] = site_pages.with_navigation(source[0])
    elif name == "docs/api":
        source[0] += site_pages.toctree(dict.fromkeys(site_pages.below("docs/api"), ""))
    text = site_figures.with_frames(source[0])
    for start, language in (("lambda %", "letir"), ("import ", "python"), ("def ", "python")):
        text = text.replace(f"```text\n{start}", f"```{language}\n{start}")
    source[0] = text


def pages_with_lists(app, env, added: set, changed: set, removed: set) -> list[str]:
    """The pages to read again in every build, because they list others."""
    return [site_pages.INDEX, "docs/api"]


def write_figures(app, error: Exception | None) -> None:
    """Write the files that figures and frames show."""
    logging.getLogger("letir").setLevel(logging.WARNING)  # Sphinx prints what is below too
    if error is None and app.builder.format == "html":
        site_figures.write(Path(app.outdir) / site_figures.FOLDER)


def setup(app) -> None:
    """Register what the build of this site adds to Sphinx."""
    app.add_lexer("letir", ProgramLexer)
    app.connect("env-get-outdated", pages_with_lists)
    app.connect("source-read", prepare)
    app.connect("build-finished", write_figures)
