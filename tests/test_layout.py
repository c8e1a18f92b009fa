"""The layout of the package: the order of imports, folders, and what each module may know."""

import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import letir
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ops import load_all

load_all()
ROOT = Path(letir.__file__).parent
FILES = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}

ORDER = [
    *(
        "errors",
        "ast",
        "ops visitors progress foreign_names",
        "eval",
        "kernels",
        "plan tracing",
        "numpy",
    ),
    *("passes", "ad", "transforms", "source", "eager", "executor"),
    "scripting random scipy nn",
    "onnx dask viz testing datasets storage debug tree",
    *("extend", "letir", "demo", "cli", "__main__"),
]
LAYERS = {package: layer for layer, packages in enumerate(ORDER) for package in packages.split()}

OPTIONAL = {"cupy", "onnx", "onnxruntime", "scipy", "hypothesis", "IPython", "matplotlib", "cupyx"}
OPTIONAL |= {"llvmlite", "networkx", "tqdm"}
# These load names on first use; the last serves the namespace of a traced value.
LOADING_ON_USE = {
    "__init__.py",
    "nn/__init__.py",
    "random/__init__.py",
    "extend.py",
    "ops/__init__.py",
    "testing/__init__.py",
}
LOADING_ON_USE |= {
    "viz/__init__.py",
    "testing/samples/__init__.py",
    "passes/__init__.py",
    "dask/__init__.py",
    "eager/__init__.py",
}
LOADING_ON_USE |= {"executor/autodiff/__init__.py", "ops/as_numpy/__init__.py", "ast/__init__.py"}
LOADING_ON_USE |= {"executor/transformed_executors.py"}  # when it unpickles
LOADING_ON_USE |= {"tracing/numpy_functions/registry.py", "tracing/numpy_protocols/array_value.py"}
MAX_FILES = 22  # about twenty, with __init__.py and conftest.py
MAX_LINES, MAX_IN_FUNCTION = 400, 40
MIRRORS = ("testing/samples/",)  # a file for each file of letir.ops
# folders with files of the same names, for the same families of operations or of functions
ALIKE_FOLDERS = (
    ("ops/", "nn/", "numpy/", "scipy/", "onnx/importing/families/"),
    ("ops/control_flow/", "tracing/control_flow/"),
)
NAMED_ALIKE = {"primitive"}  # the record of an operation and the maker of users' records


@cache
def tree_of(name: str) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(FILES[name].read_text())


@cache
def nodes_in(tree: ast.AST) -> list[ast.AST]:
    """The nodes of a tree, which several tests look at."""
    return list(ast.walk(tree))


def package_of(name: str) -> str:
    """The package that contains a file; for a file at the top, its module name."""
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
    """(package of letir, line) of every import; other names count as letir's own."""
    for node in nodes_in(tree):
        for full in imported(node):
            top, _, rest = full.partition(".")
            if top == "letir":
                package = rest.split(".")[0]
                yield (package if package in LAYERS else "letir"), node.lineno


def test_every_package_has_a_place_in_the_import_order():
    assert [] == [name for name in FILES if package_of(name) not in LAYERS]


def test_imports_only_go_left():
    assert [] == [
        f"{name}:{line}: {package_of(name)} imports {package}, which is not left of it"
        for name in FILES
        for package, line in packages_imported(tree_of(name))
        if LAYERS[package] >= LAYERS[package_of(name)] and package != package_of(name)
    ]


def _files_imported(name: str) -> set[str]:
    """The files of letir that a file imports at module level."""
    found = {full for node in tree_of(name).body for full in imported(node)}
    for node in tree_of(name).body:
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    paths = {
        full.partition(".")[2].replace(".", "/") for full in found if full.startswith("letir.")
    }
    return {f"{path}.py" for path in paths} & FILES.keys()


def test_there_are_no_import_cycles():
    """So that any file may be imported first, from any thread."""
    left = {name: _files_imported(name) for name in FILES}
    while free := [name for name, needed in left.items() if not needed & left.keys()]:
        for name in free:
            del left[name]

    assert not left


def functions_in(name: str, kinds: tuple) -> Iterator[ast.AST]:
    """The functions of these kinds in a file."""
    return (node for node in nodes_in(tree_of(name)) if isinstance(node, kinds))


def has_inner_imports(name: str) -> bool:
    """Whether a file has imports that are not statements of the module itself."""
    top = set(tree_of(name).body)
    imports = (
        node for node in nodes_in(tree_of(name)) if type(node) in (ast.Import, ast.ImportFrom)
    )
    return any(node not in top for node in imports)


def test_imports_stand_at_the_top_of_a_file_unless_the_package_is_optional():
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    assert [] == [
        f"{name}:{node.lineno} imports {full}"
        for name in filter(has_inner_imports, FILES)
        for function in functions_in(name, kinds)
        for node in nodes_in(function)
        for full in imported(node)
        if full.split(".")[0] not in OPTIONAL
    ]


_IMPORTING = ("__import__", "import_module", "load_module", "load_name")


def imports_by_name(node: ast.AST) -> bool:
    """Whether a piece of syntax is a function that imports a module by its name."""
    if isinstance(node, ast.Attribute):
        return node.attr in _IMPORTING
    return isinstance(node, ast.Name) and node.id in _IMPORTING


def test_modules_are_imported_by_name_only_where_names_load_on_use():
    assert [] == [
        f"{name}:{node.lineno}"
        for name in sorted(FILES.keys() - LOADING_ON_USE)
        for node in nodes_in(tree_of(name))
        if imports_by_name(node)
    ]


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
    """Whether code (not text or comments) has this word as a name, or as a whole string."""
    for node in nodes_in(tree):
        found = {getattr(node, field, None) for field in ("id", "attr", "arg", "module")}
        found |= (
            {node.value} if isinstance(node, ast.Constant) and type(node.value) is str else set()
        )
        found |= set(imported(node))
        if word in found:
            return True
    return False


def test_only_one_module_mentions_cupy():
    files = [name for name, path in FILES.items() if "cupy" in path.read_text()]

    assert [name for name in files if mentions(tree_of(name), "cupy")] == ["eval/array_modules.py"]


def test_implementations_take_the_array_module_as_first_parameter():
    assert [] == [
        name
        for name, op in PRIMITIVES.items()
        if "." not in name and next(iter(inspect.signature(op.impl).parameters)) != "xp"
    ]


def uses_numpy(function: ast.AST) -> Iterator[int]:
    """The lines of a function that name NumPy."""
    for node in nodes_in(function):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in ("np", "numpy"):
            yield node.lineno


def test_implementations_do_not_name_numpy():
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    assert [] == [
        f"{name}:{line}"
        for name in FILES
        if name.startswith("ops/")
        for function in functions_in(name, kinds)
        if [arg.arg for arg in function.args.args[:1]] == ["xp"]
        for line in uses_numpy(function)
    ]


# ---- folders and file names ----


def test_no_folder_has_more_than_about_twenty_files():
    top = ROOT.parent
    files = [path for part in (ROOT, top / "tests") for path in part.rglob("*.py")]
    sizes = Counter(str(path.parent.relative_to(top)) for path in files)

    assert {} == {folder: n for folder, n in sizes.items() if n > MAX_FILES}


def test_files_are_short():
    lengths = {name: len(path.read_text().splitlines()) for name, path in FILES.items()}

    assert {} == {name: n for name, n in lengths.items() if n > MAX_LINES}


def lines_of_body(function: ast.FunctionDef) -> int:
    """The number of lines of a function, without its signature and docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_functions_are_short():
    longer = {
        f"{name}: {function.name}"
        for name in FILES
        for function in functions_in(name, (ast.FunctionDef, ast.AsyncFunctionDef))
        if lines_of_body(function) > MAX_IN_FUNCTION
    }

    assert longer == set()


def test_a_file_name_occurs_once_in_a_package():
    """Except in the folders of ``MIRRORS``, which repeat the file names of others."""
    places = {}
    for name in FILES:
        path = Path(name)
        if path.name != "__init__.py" and len(path.parts) > 1 and not name.startswith(MIRRORS):
            places.setdefault((path.parts[0], path.name), []).append(name)

    assert [] == [names for names in places.values() if len(names) > 1]


def test_a_file_name_stands_in_two_packages_only_where_their_folders_mirror_each_other():
    places = {}
    for name in FILES:
        if Path(name).name != "__init__.py" and not name.startswith(MIRRORS):
            places.setdefault(Path(name).name, []).append(name)

    assert [] == [
        names
        for names in places.values()
        if len(names) > 1
        and not any(all(name.startswith(folders) for name in names) for folders in ALIKE_FOLDERS)
    ]


# ---- modules that may name operations ----

# Only rules that rewrite particular operations, canonicalization and printers name operations;
# all other files ask records for facts, so that a new operation needs its record only. The exporter
# to ONNX is a printer too: its rules are registered under the names of operations, and a test in
# tests/onnx/exporting checks that these exist. What it asks of binds is in records, as elsewhere.
# The rules for rows of Dask arrays are registered by name too, and tests/dask checks the names.
NAMING_ROOMS = ("ops/", "passes/peephole_rules/", "passes/canonicalization.py")
NAMING_ROOMS += ("ast/text/printer.py", "testing/")  # each sample is of one operation


def is_operation(node: ast.AST) -> bool:
    """Whether an expression is the operation of a bind: ``bind.op``, or a variable ``op``."""
    return (isinstance(node, ast.Attribute) and node.attr == "op") or (
        isinstance(node, ast.Name) and (node.id == "op" or node.id.endswith("_op"))
    )


def is_operation_name(node: ast.AST) -> bool:
    """Whether an expression is the name of an operation, or of its form in kernels."""
    names = ("name", "scalar", "reduction")
    return isinstance(node, ast.Attribute) and node.attr in names and is_operation(node.value)


def imported_records(tree: ast.AST) -> set[str]:
    """The names under which a file imports records from ``letir.ops``."""
    return {
        alias.asname or alias.name
        for node in nodes_in(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("letir.ops.")
        for alias in node.names
        if isinstance(getattr(sys.modules.get(node.module), alias.name, None), Primitive)
    }


def is_record(node: ast.AST, records: set[str]) -> bool:
    """Whether an expression is one particular record: imported, or ``PRIMITIVES["name"]``."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id == "PRIMITIVES"
    return isinstance(node, ast.Name) and node.id in records


def elements(node: ast.AST) -> list[ast.AST]:
    """The elements of a list, tuple or set display, or the keys of a dict display."""
    if isinstance(node, ast.Tuple | ast.Set | ast.List):
        return node.elts
    return node.keys if isinstance(node, ast.Dict) else []


def tables_of(tree: ast.Module) -> set[str]:
    """The names of a module's own and imported constants, ``SOME_NAMES`` or ``_SOME_NAMES``."""
    found = {node.id for node in nodes_in(tree) if isinstance(node, ast.Name)}
    # PARTS is the reduction of operations whose decomposition has the reductions
    return {name for name in found if name.isupper()} - {"PRIMITIVES", "PARTS"}


def aliases_of(function: ast.AST) -> set[str]:
    """The variables to which a function assigns operations or their names."""
    found = set()
    for node in nodes_in(function):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            targets, values = elements(target) or [target], elements(value) or [value]
            pairs = zip(targets, values, strict=False)
            found |= {t.id for t, v in pairs if isinstance(t, ast.Name) and is_asked(v, set())}
    return found


def is_asked(node: ast.AST, aliases: set[str]) -> bool:
    """Whether an expression is the operation of a bind, or its name."""
    is_alias = isinstance(node, ast.Name) and node.id in aliases
    return is_alias or is_operation(node) or is_operation_name(node)


def is_fixed(node: ast.AST, records: set[str], tables: set[str]) -> bool:
    """Whether an expression does not depend on the bind: a record, a name, or a table of these."""
    if isinstance(node, ast.Name):
        return node.id in tables or node.id in records
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_text or bool(elements(node)) or is_record(node, records)


def ways_of_naming(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, reason) for each place where a file tests which operation a bind has."""
    records, tables = imported_records(tree), tables_of(tree)
    functions = [node for node in nodes_in(tree) if isinstance(node, ast.FunctionDef)]
    with_aliases = [(f, aliases) for f in functions if (aliases := aliases_of(f))]
    for scope, aliases in [(tree, set()), *with_aliases]:
        assigned = [node for node in nodes_in(scope) if isinstance(node, ast.Assign)]
        unpacked = {node.value for node in assigned if isinstance(node.targets[0], ast.Tuple)}
        for node in nodes_in(scope):
            collection = elements(node) if node not in unpacked else []
            asked, fixed = _question(node)
            if any(is_asked(n, aliases) for n in asked):
                if any(is_fixed(n, records, tables) for n in fixed):
                    yield node.lineno, "an operation is compared with particular ones"
            elif any(is_record(n, records) for n in asked):
                yield node.lineno, "a record is compared"
            if sum(is_record(element, records) for element in collection) > 1:
                yield node.lineno, "a collection of records"


def _question(node: ast.AST) -> tuple[list[ast.AST], list[ast.AST]]:
    """(expressions tested, expressions that they are compared with or looked up in)."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return sides, sides
    if isinstance(node, ast.Subscript):
        return [node.slice], [node.value]
    if isinstance(node, ast.MatchValue):
        return [node.value], []
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    if is_method and node.func.attr in ("get", "pop", "setdefault"):
        return node.args[:1], [node.func.value]
    return [], []


def test_modules_ask_records_for_facts_instead_of_naming_operations():
    rooms = [name for name in FILES if not name.startswith(NAMING_ROOMS)]
    found = [
        f"{name}:{line}: {why}" for name in rooms for line, why in ways_of_naming(tree_of(name))
    ]

    assert not found, "\n".join(found)


def test_each_way_of_naming_an_operation_is_detected():
    imports = "from letir.ops.elementwise.ufuncs import add, mul"
    named = [
        '"." in op.name',
        *("bind.op is add", "add is not op", 'op.name == "add"', "bind.op in (add, mul)"),
        *("x.op.name in SOME_NAMES", "SOME_NAMES[bind.op]", "_SOME.get(op.name)", "{add, mul}"),
        *('bind.op is PRIMITIVES["add"]', "{add: 1, mul: 2}", "op.name not in ('add', 'mul')"),
        *('op.scalar == "matmul"', 'bind.op.reduction in ("max", "min")'),
        'lambda: 0\ndef f(bind):\n    name, args = bind.op.name, bind.args\n    name == "add"',
    ]
    free = ["a.op is b.op", 'op.role == "guard"', "op.name in asked", "emit(add, x)", "op in seen"]

    for texts, expected in [(named, True), (free, False)]:
        trees = [ast.parse(f"{imports}\nfound = {text}") for text in texts]
        assert [expected] * len(texts) == [any(ways_of_naming(tree)) for tree in trees]


def test_the_five_files_to_read_first_are_short():
    page = (ROOT.parent / "docs" / "how_it_works.md").read_text()
    _, _, table = page.partition("## In which order to read")
    core = re.findall(r"`letir/([\w/]+\.py)`", table)[:5]

    assert core == [
        "ast/terms.py",
        "ops/elementwise/ufuncs.py",
        "visitors/visitor.py",
        "eval/evaluator.py",
        "ad/reverse.py",
    ]
    assert sum(len(FILES[name].read_text().splitlines()) for name in core) <= 1000


def test_argued_faults_are_in_lines_that_exist():
    """The lines of ``tests/mutants_argued.txt``, which a renaming would make useless."""
    text = (Path(__file__).parent / "mutants_argued.txt").read_text()
    faults = re.findall(r"^letir/(\S+\.py): (.*) -> ", text, re.MULTILINE)

    assert faults
    for name, line in faults:
        assert line in " ".join(FILES[name].read_text().split()), f"{name}: {line}"


# ---- private names ----


def words_in(paths: Iterable[Path]) -> Counter[str]:
    """How many of these files contain each word."""
    return Counter(word for path in paths for word in set(re.findall(r"\w+", path.read_text())))


@cache
def words_in_sources() -> Counter[str]:
    """How many files of the repository contain each word."""
    top = ROOT.parent
    places = [path for part in ("tests", "benchmarks", "docs") for path in (top / part).rglob("*")]
    pages = [path for path in places if path.suffix in (".py", ".md")]
    return words_in([*FILES.values(), *pages, ROOT / "__init__.pyi"])


def test_a_function_that_no_other_file_names_is_private():
    """Except functions for users, commands, and samples, which are found by their folder."""
    named = words_in_sources()

    assert [] == [
        f"{name}:{node.lineno} {node.name}"
        for name in FILES
        if not name.startswith(("testing/", "cli/"))
        for node in tree_of(name).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        if named[node.name] == 1 and not any(map(is_for_users, node.decorator_list))
    ]


def constants_of(name: str) -> Iterator[str]:
    """The names in capitals that a file assigns at module level."""
    for node in tree_of(name).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            found = [n.id for n in nodes_in(node) if isinstance(n, ast.Name) and is_stored(n)]
            yield from [word for word in found if word.isupper()]


def is_stored(node: ast.Name) -> bool:
    """Whether a name is assigned to."""
    return isinstance(node.ctx, ast.Store)


def test_a_constant_that_no_other_file_names_is_private():
    named = words_in_sources()

    assert [] == [
        f"{name}: {constant}"
        for name in FILES
        if not name.startswith("testing/")
        for constant in constants_of(name)
        if not constant.startswith("_") and named[constant] == 1
    ]


def is_for_users(decorator: ast.AST) -> bool:
    """Whether a decorator makes a function one for users."""
    return ast.unparse(decorator).startswith(("entry_point", "drop_in("))
