"""``explorer``: a program, its gradient, its memory and its passes as one HTML page."""

import os
from html import escape
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from letir.ad.remat.cost_model import nbytes
from letir.ast import entry_point
from letir.ast.terms import Arg, Local
from letir.errors import LetirError
from letir.viz.explorer_page.kernel_code import kernel_content
from letir.viz.explorer_page.memory_steps import memory_content
from letir.viz.explorer_page.page_file import page_text
from letir.viz.explorer_page.pass_history import pass_steps
from letir.viz.explorer_page.row_pool import RowPool
from letir.viz.explorer_page.run_content import run_content
from letir.viz.explorer_page.source_lines import source_files
from letir.viz.explorer_page.subject import Subject, subject_of


@frozen(eq=False, repr=False)
class ExplorerPage:
    """A page to explore a program: notebooks show it in a frame, ``save`` writes it to a file."""

    title: str
    text: str
    html: str = field(repr=False)

    def save(self, path: str | os.PathLike) -> None:
        """Write the page; the name of the file ends in ``.html``."""
        if Path(path).suffix.lower() not in (".html", ".htm"):
            raise LetirError(
                f"{os.fspath(path)}: an explorer page is an HTML file\n  end the name with .html"
            )
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self):
        return (
            f'<iframe title="{escape(self.title)}" sandbox="allow-scripts" srcdoc="'
            f'{escape(self.html)}" style="width: 100%; height: 44em; border: 0"></iframe>'
        )

    def __str__(self):
        return self.text

    __repr__ = __str__


@entry_point
def explorer(
    program: Any, *args: Any, gradient: bool = True, title: str | None = None, **kwargs: Any
) -> ExplorerPage:
    """A page on which to search a program, and to see where its values come from.

    The page is one HTML file, which loads nothing from the network: a notebook shows it, ``save``
    writes it. ``program``: a Lambda, a Gradient, a compiled program, a jitted function that has
    been called, or a function, which is recorded with the arguments. ``gradient``: whether the
    backward program is shown beside the forward program, if there is one. ``title``: by default
    the name of the function.

    >>> import os, tempfile
    >>> import numpy as np
    >>> page = explorer(lambda x: np.sin(x).sum(), np.ones(3))
    >>> print(page)
    explorer of <lambda>: 1 parameter, 2 binds, 1 result; backward: 3 binds
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page.save(f"{folder}/sine.html")
    ...     os.listdir(folder)
    ['sine.html']
    """
    subject = subject_of(program, args, kwargs, gradient)
    return _page_of(evolve(subject, title=title) if title else subject)


def _page_of(subject: Subject) -> ExplorerPage:
    """The page about a subject."""
    counts = (
        (len(subject.forward_program.params), "parameter"),
        (subject.forward, "bind"),
        (subject.results, "result"),
    )
    about = ", ".join([f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in counts])
    backward = len(subject.program) - subject.forward
    if subject.cotangents:
        about += f"; backward: {backward:,} bind{'' if backward == 1 else 's'}"
    content = {"title": subject.title, "about": about, **_program_content(subject)}
    text = f"explorer of {subject.title}: {about}"
    return ExplorerPage(subject.title, text, page_text(f"{subject.title} · letir", content))


def _program_content(subject: Subject) -> dict[str, Any]:
    """The program of a page, with the tables that its parts refer to."""
    pool, fn = RowPool(), subject.program
    params = pool.params(fn)
    rows = pool.binds(fn.binds)
    results = pool.operands(fn.ret.args)
    residuals = _kept_bytes(subject, pool)
    passes = pass_steps(fn, pool)
    files, lines = source_files(pool.sources.values())
    return {
        **pool.tables(),
        "lines": lines,
        "files": files,
        "program": {
            "params": params,
            "cotangents": [pool.numbers[local] for local in subject.cotangents],
            "rows": rows,
            "forward": subject.forward,
            "results": results,
            "forwardResults": subject.results,
            "reason": subject.reason,
            "inputs": [pool.numbers[local] for local in subject.inputs],
            "kept": residuals,
        },
        "run": run_content(subject),
        "memory": memory_content(fn),
        "passes": passes,
        "kernels": kernel_content(fn),
    }


def _kept_bytes(subject: Subject, pool: RowPool) -> list[list]:
    """``[local, bytes]`` of each value of the forward program that the backward program reads.

    The bytes are a number, or a text for symbolic sizes and unknown types.
    """
    if not subject.cotangents:
        return []
    fn = subject.program
    forward_locals = {b for bind in fn.binds[: subject.forward] for b in bind.binders}
    forward_locals |= set(fn.params) - set(subject.cotangents)
    read: dict[Arg, None] = {}
    for bind in fn.binds[subject.forward :]:
        read.update(dict.fromkeys(bind.locals()))
    result = []
    for local in read:
        if type(local) is Local and local in forward_locals:
            size = nbytes(local)
            size_text = size if type(size) is int else "" if size is None else str(size)
            result.append([pool.numbers[local], size_text])
    return result
