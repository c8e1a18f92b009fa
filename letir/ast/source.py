"""``Source``: a place in the user's code, which binds remember."""

import linecache
import sys

from attrs import field, frozen

_MOST_CHARACTERS = 60  # the length of an excerpt of source code


@frozen
class Source:
    r"""A place in the user's code.

    ``span``: (last line, first column, last column) of the expression; ``text``: the code there if
    it is known without the file, as in a parsed program.

    >>> from letir import parse
    >>> f = parse("lambda %0 {\n  %1 = exp(%0)  # model.py:12\n  return %1\n}")
    >>> f.binds[0].source
    Source(file='model.py', line=12)
    """

    file: str
    line: int
    span: tuple | None = field(default=None, eq=False, repr=False)
    text: str | None = field(default=None, eq=False, repr=False)

    @property
    def short(self) -> str:
        """``name.py:12``, without the folder; ``In [3], line 2`` for a cell of a notebook."""
        cell = _cell_of(self.file)
        return f"{cell}, line {self.line}" if cell else f"{self.short_file}:{self.line}"

    @property
    def short_file(self) -> str:
        """``name.py``, without the folder; ``In [3]`` for a cell of a notebook."""
        return _cell_of(self.file) or self.file.replace(chr(92), "/").rpartition("/")[2]

    @property
    def excerpt(self) -> str:
        """The code at this place, shortened; empty if the file cannot be read."""
        if self.text is not None:
            return self.text
        # read when it is shown, as tracebacks do: recording must not open files
        last = self.line if self.span is None else self.span[0]
        lines = [linecache.getline(self.file, n) for n in range(self.line, last + 1)]
        if self.span is not None and lines[0]:
            _, first_column, last_column = self.span  # in bytes: https://peps.python.org/pep-0657/
            lines[-1] = lines[-1].encode()[:last_column].decode(errors="replace")
            lines[0] = lines[0].encode()[first_column:].decode(errors="replace")
        found = " ".join(" ".join(lines).split())
        return found if len(found) <= _MOST_CHARACTERS else found[: _MOST_CHARACTERS - 3] + "..."

    def __str__(self):
        cell = _cell_of(self.file)
        return f"{cell}, line {self.line}" if cell else f"{self.file}:{self.line}"


def _cell_of(file: str) -> str | None:
    """The cell of an interactive session whose code has this file name, as in ``In [3]``.

    None for every other file. IPython has the number of the cell; the name itself is a temporary
    file, which does not exist.
    """
    session = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if session is None else session()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = None if name_of is None else name_of(file)
    return None if found is None else found[1].replace("In[", "In [")
