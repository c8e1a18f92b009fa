"""The source of scripts: a string, or the file of a Python function; and errors with locations.

``ScriptText`` has its file and the names of the enclosing Python scope. The source is never run.
"""

import ast
import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from attrs import frozen

from letir.errors import LetirError, ParseError
from letir.scripting.script_terms import TextPosition

_TEXT = "<script>"
_NO_NAMES: Mapping[str, Any] = {}


@frozen(eq=False)
class ScriptText:
    """A Python source text, found in ``file`` after ``above`` lines.

    ``names``: further names that it may use. Indented text is parsed below an added ``if``, so that
    columns agree with the user's file.
    """

    content: str
    lines: list[str]
    file: str
    above: int
    names: Mapping[str, Any]
    is_indented: bool

    @classmethod
    def from_source(
        cls, content: str, file: str = _TEXT, above: int = 0, names: Mapping[str, Any] = _NO_NAMES
    ) -> "ScriptText":
        """The text ``content``, indented or not."""
        first = next((line for line in content.splitlines() if line.strip()), "")
        is_indented = first[:1] in (" ", "\t")  # a method, or a function inside of a function
        content = "if 1:\n" * is_indented + content
        lines = re.split("\r\n|\r|\n", content)  # as Python counts them
        return cls(content, lines, file, above - is_indented, names, is_indented)

    def place(self, node: ast.AST) -> TextPosition:
        """The position where a node begins, in characters."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        # ast counts in bytes of UTF-8
        before = self.lines[line - 1].encode()[:column] if line <= len(self.lines) else b""
        return TextPosition(line + self.above, len(before.decode(errors="replace")) + 1)

    def error(self, at: TextPosition | ast.AST, message: str) -> ParseError:
        """A ParseError at a place, with the user's file if there is one."""
        at = self.place(at) if isinstance(at, ast.AST) else at
        line = max(at.line, self.above + self.is_indented + 1)  # never the added 'if'
        where = "" if self.file == _TEXT else f"\n  at {self.file}:{line}"
        return ParseError(message + where, line, at.column)

    def definitions(self) -> list[ast.FunctionDef]:
        """The functions of the text. Raises ParseError if it contains anything else."""
        result = []
        body = self.parsed().body
        if self.is_indented and isinstance(body[0], ast.If):  # the added 'if'
            body = body[0].body
        for node in body:
            if isinstance(node, ast.FunctionDef):
                result.append(node)
            elif not _is_docstring(node):
                raise self.error(node, "a script consists of functions: def name(...): ...")
        if not result:
            raise self.error(
                TextPosition(1 + self.above, 1), "there is no function: def name(...): ..."
            )
        return result

    def parsed(self) -> ast.Module:
        """The syntax tree of the text."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # importing the user's file has warned already
                return ast.parse(self.content)
        except SyntaxError as error:
            line, column = error.lineno or 1, error.offset or 1
            at = TextPosition(line + self.above, max(column, 1))
            raise self.error(at, f"not valid Python: {error.msg}") from None
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            raise self.error(TextPosition(1, 1), f"not valid Python: {error}") from None


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and type(node.value.value) is str
    )


def script_text_of(source: str | Callable) -> ScriptText:
    """The text of a script: the string itself, or the source of a Python function from its file.

    Raises LetirError if there is no such file.
    """
    if isinstance(source, str):
        return ScriptText.from_source(source)
    if not inspect.isfunction(source):
        raise LetirError(
            f"script: expected source code or a Python function, found {type(source).__name__}\n"
            "  pass the source as a string, or a function written with def"
        )
    try:
        lines, first = inspect.getsourcelines(source)
    except (OSError, TypeError):
        raise LetirError(
            f"script: the source of {source.__qualname__} is not available\n"
            "  define it in a file or a notebook, or pass its text"
        ) from None
    file = source.__code__.co_filename
    return ScriptText.from_source("".join(lines), file, max(first, 1) - 1, _Surroundings(source))


def function_definition(text: ScriptText) -> ast.FunctionDef:
    """The one function of the text of a Python function."""
    try:
        (node,) = text.definitions()
    except ValueError:
        raise text.error(TextPosition(text.above + 1, 1), "several functions on one line") from None
    return node


class _Surroundings(Mapping):
    """The enclosing scope of a Python function: closure variables, then globals."""

    def __init__(self, function: Callable):
        code = function.__code__
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self.cells, self.globals = cells, function.__globals__

    def __getitem__(self, name: str):
        if name in self.cells:
            try:
                return self.cells[name].cell_contents
            except ValueError:  # not bound yet
                raise KeyError(name) from None
        return self.globals[name]

    def __iter__(self):
        return iter({**self.globals, **self.cells})

    def __len__(self):
        return len({**self.globals, **self.cells})


def is_module(value: Any) -> bool:
    """Whether a name of the enclosing scope is a module whose functions scripts know."""
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] in (
        "numpy",
        "letir",
        "math",
    )
