"""Write ``docs/api.md`` and ``docs/api/``, the reference of all public names, from their docstrings.

python docs/make_api.py
"""

import inspect
import operator
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType

import letir
from letir.ast.primitive import Primitive

FOLDER = Path(__file__).with_name("api")
INDEX = FOLDER.with_suffix(".md")
EXTEND = "Extending"
NAMESPACES = (
    *("dask", "datasets", "debug", "eager", "nn", "nn.initializers", "nn.optim", "onnx", "passes"),
    *("random", "testing", "tree", "viz"),
)
KINDS = (FunctionType, classmethod, property, staticmethod)  # of the members that pages list
HEAD = """\
# All public names

Made of the docstrings by `python docs/make_api.py`; a test fails if it is not up to date. Every example is run by the test
suite. `letir.numpy` and `letir.scipy` are described on the pages on [NumPy](numpy.md) and [SciPy](scipy.md).

"""
OBJECTS = {  # the descriptions of public objects, whose docstrings are those of their classes
    "OPSET": "The version of ONNX's operators that exported models have by default.",
    "PRIMITIVES": "The records of all operations, by name. A record that is not loaded yet is loaded.",
    "SAMPLES": "The samples of all operations, by name: lists of ``Sample``.",
}
COLUMNS = "| name | |\n|---|---|\n"


def pages() -> dict[Path, str]:
    """The text of each page, by its path."""
    themes = {theme: names_of(modules) for theme, modules in letir._PUBLIC.items()}
    themes[EXTEND] = {name: getattr(letir.extend, name) for name in letir.extend.__all__}
    found = {FOLDER / f"{slug(theme)}.md": page(theme, names) for theme, names in themes.items()}
    spaces = {f"letir.{name}": members(namespace(name)) for name in NAMESPACES}
    for title, names in spaces.items():
        found[FOLDER / f"{slug(title)}.md"] = namespace_page(title, names)
    found[INDEX] = HEAD + "\n".join(
        table(title, names, f"api/{slug(title)}.md") for title, names in {**themes, **spaces}.items()
    )
    return found


def names_of(modules: Mapping[str, tuple[str, ...]]) -> dict:
    """The public names of a theme, with their values, in alphabetical order."""
    names = [name for found in modules.values() for name in found]
    return {name: getattr(letir, name) for name in sorted(names, key=str.lower)}


def namespace(name: str) -> ModuleType:
    """The module of a namespace, such as ``nn.optim``."""
    return operator.attrgetter(name)(letir)


def members(module: ModuleType) -> dict:
    """What a namespace exports, without further modules."""
    found = {name: getattr(module, name) for name in sorted(module.__all__, key=str.lower)}
    return {name: value for name, value in found.items() if not inspect.ismodule(value)}


def slug(title: str) -> str:
    """The name of a page's file."""
    return title.lower().replace(".", "_").replace(" ", "_")


def table(title: str, names: Mapping, target: str) -> str:
    """The part of the index about one page."""
    rows, seen = [], Counter()
    for name, value in names.items():
        anchor = name.lower() + (f"-{seen[name.lower()]}" if seen[name.lower()] else "")
        seen[name.lower()] += 1  # trace and Trace have headings that differ by a number
        rows.append(f"| [`{name}`]({target}#{anchor}) | {summary(value, name)} |\n")
    return f"## {title}\n\n{COLUMNS}{''.join(rows)}"


def page(title: str, names: Mapping) -> str:
    """The page of a theme."""
    return f"# {title}\n\n" + "\n".join(section(name, value) for name, value in names.items())


def namespace_page(title: str, names: Mapping) -> str:
    """The page of a namespace, which begins with the docstring of the module."""
    head, _, names_page = page(f"`{title}`", names).partition("\n\n")
    module = namespace(title.removeprefix("letir."))
    return f"{head}\n\n{described(documentation(module))}\n\n{names_page}"


def section(name: str, value) -> str:
    """The heading, signature, docstring and methods of one name."""
    parts = [f"## {name}\n"]
    if shown := signature(name, value):
        parts.append(f"```text\n{shown}\n```\n")
    parts.append(f"{described(documentation(value, name))}\n")
    parts += list(methods(value))
    return "\n".join(parts)


def signature(name: str, value) -> str:
    """How a name is called, with short names of types; '' for what is not called."""
    if isinstance(value, Primitive):
        return inspect.getdoc(value).partition("\n\n")[0]
    if isinstance(value, ModuleType) or not callable(value):
        return ""
    try:
        text = f"{name}{inspect.signature(value)}"
    except (TypeError, ValueError):
        return ""
    text = re.sub(r"<function <lambda> at 0x\w+>", "...", text)
    text = re.sub(r"<(?:class|function) '?([\w.]+)[^>]*>", r"\1", text)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text)


def documentation(value, name: str = "") -> str:
    """The docstring of a public object, without references to promises such as [semantics.md B2]."""
    text = OBJECTS.get(name) or inspect.getdoc(value) or ""
    if isinstance(value, Primitive):
        text = text.partition("\n\n")[2]  # without the signature
    return re.sub(r"\s*\[semantics\.md [A-G]\d+\]", "", text)


def summary(value, name: str = "") -> str:
    """The first sentence of a docstring, as a cell of a table."""
    first = documentation(value, name).partition("\n\n")[0].replace("\n", " ")
    return markdown(re.split(r"(?<=\.) (?=[A-Z`])", first)[0]).replace("|", "\\|")


def described(text: str) -> str:
    """A docstring as Markdown: examples and indented parts are blocks of code."""
    blocks = []
    for block in text.split("\n\n"):
        if block.startswith(">>>"):
            blocks.append(f"```pycon\n{block}\n```")
        elif block.startswith("    "):
            blocks.append(f"```text\n{inspect.cleandoc(block)}\n```")
        else:
            blocks.append(markdown(block))
    return "\n\n".join(blocks)


def markdown(text: str) -> str:
    """Prose of a docstring, whose code stands in pairs of backticks."""
    return text.replace("``", "`")


def methods(value) -> Iterator[str]:
    """A table of the public methods and properties that a class defines."""
    if not inspect.isclass(value) or issubclass(value, Exception):
        return
    own = {name: v for name, v in vars(value).items() if type(v) in KINDS and name[0] != "_"}
    rows = [f"| `{name}` | {summary(found)} |\n" for name, found in own.items() if summary(found)]
    if rows:
        yield f"| member | |\n|---|---|\n{''.join(rows)}"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    written = pages()
    for path in set(FOLDER.glob("*.md")) - set(written):
        path.unlink()
    for path, content in written.items():
        path.write_text(content, encoding="utf-8")
