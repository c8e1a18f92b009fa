"""``Writer``: writes the statements of one function, one line for each bind.

It visits the binds in order, assigns a text to every local (a name or an expression), and asks the
record of each operation for its source form. Nested bodies are written inline.
"""

import linecache
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from letir.ast.source import error_in_let, error_of_rule
from letir.ast.terms import Arg, Bind, Lambda, Local, Source
from letir.errors import ExportError, LetirError
from letir.source.bind_writer import BindWriter
from letir.source.module import Module
from letir.source.names import Names
from letir.source.numpy_expressions import source_form
from letir.source.numpy_literals import WIDTH, literal_text, printable_line, wrapped_items
from letir.visitors.usedef import use_counts


class Writer:
    """Writes one function of ``module``.

    ``texts``: the text of each local; ``wanted``: names that some locals should get; ``nullable``:
    names that may be None, because their value may be ``Undef``.
    """

    def __init__(self, module: Module):
        self.module, self.names = module, Names(module.names)
        self.texts: dict[Local, str] = {}
        self.wanted: dict[Local, str] = {}
        self.nullable: set[str] = {"None"}
        self.used: set[Local] = set()
        self.lines: list[str] = []
        self.indent = "    "
        self.source: Source | None = None
        self.last_comment = ""

    # ---- lines ----

    def line(self, text: str) -> None:
        """Add a statement."""
        self.lines.append(f"{self.indent}{text}\n")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A context that adds ``head`` and indents the lines added inside."""
        self.line(head)
        outer, count = self.indent, len(self.lines)
        self.indent += "    "
        yield
        # a block needs a statement
        if all(line.lstrip().startswith("#") for line in self.lines[count:]):
            self.line("pass")
        self.indent = outer

    def comment(self, source: Source | None) -> None:
        """Add the user's line as a comment above the first bind recorded from it."""
        if source is None or source == self.source:
            return
        self.source, text = source, _source_comment(source)
        if self.lines and self.lines[-1] == self.last_comment:
            self.lines.pop()  # no statement followed the comment
        if text:
            self.line(text[: WIDTH - len(self.indent)])
            self.last_comment = self.lines[-1]

    # ---- names ----

    def arg(self, arg: Arg) -> str:
        """The text of an operand."""
        return self.texts[arg] if type(arg) is Local else literal_text(arg.value, self.indent)

    def parameter(self, local: Local, name: str, keyword: str | None = None) -> str:
        """The name of a parameter; keyword arguments keep their names."""
        self.texts[local] = keyword or self.names.fresh(name)
        return self.texts[local]

    def binder(self, local: Local, may_be_none: bool = False, op: str = "value") -> str | None:
        """A name for a result; None if it is unused."""
        if local not in self.used:  # unused results get no name, whose use a reader would look for
            return None
        if local in self.wanted:
            name = self.wanted[local]
        else:
            name = self.names.fresh(local.name) if local.name else self.names.numbered(op)
        self.texts[local] = name
        if may_be_none:
            self.nullable.add(name)
        return name

    # ---- binds ----

    def write(self, fn: Lambda) -> None:
        """Write the binds of ``fn``, whose parameters have texts already."""
        self.used.update(use_counts(fn))  # bodies are written into the same function
        for bind in fn.binds:
            self.bind(bind)

    def bind(self, bind: Bind) -> None:
        """Write one bind."""
        self.comment(bind.source)
        operands = [self.arg(arg) for arg in bind.args]
        try:
            written = source_form(BindWriter(self, bind, operands), operands)
        except ExportError as error:
            raise error_in_let(error, str(bind), bind.source) from None
        except (LetirError, RecursionError, MemoryError):
            raise
        except Exception as error:
            # of known types the type rule has seen the attributes; a user's rule may raise anything
            is_typed = all(local.type is not None for local in (*bind.locals(), *bind.binders))
            if is_typed or bind.op.is_user_defined:
                raise
            raise error_of_rule(bind.op, error, "source") from error
        if type(written) is tuple:
            self.texts.update(zip(bind.binders, written, strict=True))
        elif written is not None:
            self.assign(bind, written)

    def assign(self, bind: Bind, text: str) -> None:
        """Write ``binders = text``, even if the results are unused."""
        if not bind.binders:
            self.line(text)
            return
        base = bind.op.name.rpartition(".")[2]
        names = [self.binder(b, op=base) for b in bind.binders]
        if bind.op.results is None:
            self.line(f"{names[0]} = {text}" if names[0] else text)
            return
        comma = "," if len(names) == 1 else ""
        targets = wrapped_items([name or "_" for name in names], self.indent + "    ")
        long = len(names) == 1 or "\n" in targets
        self.line(f"({targets}{comma}) = {text}" if long else f"{targets} = {text}")

    def body(
        self, fn: Lambda, operands: Sequence[str], into: Sequence[str | None] | None = None
    ) -> tuple:
        """Write the binds of a nested ``fn`` inline, and return the texts of its results.

        With ``into`` the results are assigned to these names, unless None. A body may be written
        several times; ``texts`` has its locals as written last.
        """
        self.texts.update(zip(fn.params, operands, strict=True))
        names = into or [None] * len(fn.ret.args)
        bound = {b for bind in fn.binds for b in bind.binders}
        results = zip(fn.ret.args, names, strict=True)
        names_of_results = {a: n for a, n in results if n and type(a) is Local and a in bound}
        self.wanted.update(names_of_results)
        self.write(fn)
        for local in names_of_results:
            del self.wanted[local]
        result = tuple([self.arg(arg) for arg in fn.ret.args])
        for text, name in zip(result, names, strict=True):
            if name and text != name:
                self.line(f"{name} = {text}")
        return result

    # ---- module functions and imports ----

    def function(
        self, fn: Lambda, name: str, about: str, params: Sequence[str] | None = None
    ) -> str:
        """The name of a module function that computes ``fn``, shared by equal Lambdas."""
        module_names = self.module.names_by_key
        key = (fn, name)  # Lambdas are equal by what they compute
        if key not in module_names:
            inner = Writer(self.module)
            parameter_names = params or [p.name or f"x{i}" for i, p in enumerate(fn.params, 1)]
            heads = [
                inner.parameter(*pair) for pair in zip(fn.params, parameter_names, strict=True)
            ]
            inner.write(fn)
            inner.line(f"return {', '.join([inner.arg(arg) for arg in fn.ret.args])}")
            function_name = module_names[key] = self.module.names.fresh(name)
            head = f"def {function_name}({', '.join(heads)}):\n    {_docstring_text(about)}\n"
            self.module.functions.append(head + "".join(inner.lines))
        return module_names[key]

    def imported(self, function: Callable) -> str | None:
        """The name under which a function is imported; None if its module does not have it."""
        module, name = getattr(function, "__module__", None), getattr(function, "__name__", None)
        # not imported here, because importing could run any code
        imported_function = getattr(sys.modules.get(module), name or "", None)
        # __main__ differs when the source runs
        if imported_function is not function or module == "__main__":
            return None
        return self.module.imported(module, name)


def _docstring_text(about: str) -> str:
    """A one-line text as a docstring."""
    text = printable_line(about)
    return f'"""{text}"""' if not {'"', "\\"} & set(text) else literal_text(text)


def _source_comment(source: Source) -> str:
    """The comment ``# model.py:12  code`` (the code if the file can be read); "" for odd names.

    Only files of code that ran in this process are read, not those that a parsed text names.
    """
    place = f"# {source.short}"
    if not place.isprintable():
        return ""
    line = source.text
    if line is None:
        is_found = os.path.isabs(source.file) or source.file in linecache.cache
        line = " ".join(linecache.getline(source.file, source.line).split()) if is_found else ""
    return f"{place}  {line}" if line.isprintable() and line else place
