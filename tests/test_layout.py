"""The shape of the house: imports only go left, and what is known is known in one place."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import letir
from letir.ast.primitive import PRIMITIVES
from letir.ops import load_all

load_all()
ROOT = Path(letir.__file__).parent
FILES = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text()) for name, path in FILES.items()}

ORDER = [
    *("errors", "ast", "ops visitors", "eval", "kernels", "plan tracing", "numpy", "passes", "ad"),
    *("transforms", "source", "eager", "executor"),
    "scripting random scipy nn onnx viz testing datasets storage debug",
    *("extend", "letir", "demo", "cli"),
]
LAYERS = {package: layer for layer, packages in enumerate(ORDER) for package in packages.split()}

OPTIONAL = {"cupy", "onnx", "onnxruntime", "scipy", "hypothesis", "IPython", "matplotlib", "cupyx"}
OPTIONAL |= {"networkx"}
# These load names on first use, the last the namespace of a traced value.
LOADING_ON_USE = {"__init__.py", "extend.py", "ops/__init__.py", "testing/__init__.py"}
LOADING_ON_USE |= {"testing/samples/__init__.py", "passes/__init__.py"}
LOADING_ON_USE |= {"tracing/numpy_functions/registry.py", "tracing/numpy_protocols/array_value.py"}
NAMED_ALIKE = {"primitive"}  # the record and the maker of users' records are one thing to a reader


def package_of(name: str) -> str:
    """The package that a file is in, or the module that it is."""
    top = name.split("/")[0].removesuffix(".py")
    return "letir" if top == "__init__" else top


def imported(node: ast.AST) -> Iterator[str]:
    """The full names that an import statement imports; of ``from letir import x`` each x."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        names = [alias.name for alias in node.names]
        yield from [f"letir.{n}" for n in names] if node.module == "letir" else [node.module]


def packages_imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(package of letir, line) of every import; names that are no package are letir's own."""
    for node in ast.walk(tree):
        for full in imported(node):
            top, _, rest = full.partition(".")
            if top == "letir":
                package = rest.split(".")[0]
                yield (package if package in LAYERS else "letir"), node.lineno


@pytest.mark.parametrize("name", FILES)
def test_every_package_has_its_place_in_the_order(name):
    assert package_of(name) in LAYERS


@pytest.mark.parametrize("name", FILES)
def test_imports_only_go_left(name):
    own = package_of(name)

    for package, line in packages_imported(TREES[name]):
        left = LAYERS[package] < LAYERS[own] or package == own
        assert left, f"{name}:{line}: {own} imports {package}, which is not left of it"


def _files_imported(name: str) -> set[str]:
    """The files of letir that a file imports at its top."""
    found = {full for node in TREES[name].body for full in imported(node)}
    for node in TREES[name].body:
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    paths = {
        full.partition(".")[2].replace(".", "/") for full in found if full.startswith("letir.")
    }
    return {f"{path}.py" for path in paths} & FILES.keys()


def test_no_file_imports_itself_by_way_of_others():
    """Whichever is imported first, and by whichever threads, finds what it imports."""
    left = {name: _files_imported(name) for name in FILES}
    while free := [name for name, needed in left.items() if not needed & left.keys()]:
        for name in free:
            del left[name]

    assert not left


@pytest.mark.parametrize("name", FILES)
def test_imports_stand_at_the_top_unless_the_package_is_optional(name):
    for function in ast.walk(TREES[name]):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        for node in ast.walk(function):
            for full in imported(node):
                assert full.split(".")[0] in OPTIONAL, f"{name}:{node.lineno} imports {full}"


@pytest.mark.parametrize("name", sorted(FILES.keys() - LOADING_ON_USE))
def test_modules_are_imported_by_name_only_where_names_load_on_use(name):
    for node in ast.walk(TREES[name]):
        assert not (isinstance(node, ast.Attribute) and node.attr == "import_module"), name
        assert not (isinstance(node, ast.Name) and node.id in ("__import__", "import_module")), name


def test_no_module_is_named_like_a_public_function():
    public = {name: getattr(letir, name) for name in letir.__all__}
    functions = {
        name
        for name, value in public.items()
        if not inspect.isclass(value) and not inspect.ismodule(value)
    }
    modules = {Path(name).stem for name in FILES} | {Path(name).parent.name for name in FILES}

    assert functions & modules <= NAMED_ALIKE


def mentions(tree: ast.AST, word: str) -> bool:
    """Whether code (no text, no comment) has this word as a name, or as a string of its own."""
    for node in ast.walk(tree):
        found = {getattr(node, field, None) for field in ("id", "attr", "arg", "module")}
        found |= (
            {node.value} if isinstance(node, ast.Constant) and type(node.value) is str else set()
        )
        found |= set(imported(node))
        if word in found:
            return True
    return False


def test_only_one_module_knows_cupy():
    assert [name for name in FILES if mentions(TREES[name], "cupy")] == ["eval/array_modules.py"]


@pytest.mark.parametrize("name", [name for name in PRIMITIVES if "." not in name])
def test_implementations_get_the_array_module(name):
    first = next(iter(inspect.signature(PRIMITIVES[name].impl).parameters))

    assert first == "xp"


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("ops/")])
def test_implementations_compute_with_the_array_module_they_get(name):
    for function in ast.walk(TREES[name]):
        args = getattr(function, "args", None)
        if not isinstance(args, ast.arguments) or [a.arg for a in args.args[:1]] != ["xp"]:
            continue
        for node in ast.walk(function):
            numpy = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            assert not (numpy and node.value.id in ("np", "numpy")), f"{name}:{node.lineno}"
