"""Run the Python blocks of the pages and write what they print into the text blocks after them.

    python docs/make_outputs.py            all pages
    python docs/make_outputs.py README.md  one page

The blocks of a page share their names. A block that prints is followed by one marked ``text``,
which holds its output; the tests fail where it does not.
"""

import contextlib
import io
import linecache
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", *sorted(f"docs/{path.name}" for path in ROOT.glob("docs/*.md")))
BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```\n)?", re.DOTALL)


def refreshed(page: str) -> str:
    """The text of a page with what its blocks print now.

    Raises ValueError for a block that prints without a place for it, and what a block raises.
    """
    names: dict = {"__name__": "example"}

    def run(match: re.Match) -> str:
        code, output = match["code"], printed(match["code"], names)
        if match["output"] is None:
            if output:
                raise ValueError(f"a block prints, but no text block follows it:\n{code}")
            return match[0]
        return f"```python\n{code}```\n\n```text\n{output}```\n"

    with inside_a_folder():
        return BLOCK.sub(run, page)


def printed(code: str, names: dict, file: str = "example.py") -> str:
    """What ``code`` prints to stdout; lines of programs in it count from the start of the block."""
    out = io.StringIO()
    lines = code.splitlines(keepends=True)
    linecache.cache[file] = (len(code), None, lines, file)  # for inspect
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(code, file, "exec"), names)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


@contextlib.contextmanager
def inside_a_folder():
    """A temporary current folder, for examples that write files."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


if __name__ == "__main__":
    for name in sys.argv[1:] or PAGES:
        path = ROOT / name
        path.write_text(refreshed(path.read_text(encoding="utf-8")), encoding="utf-8")
