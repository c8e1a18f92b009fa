"""Plant faults in letir one by one, run the tests that belong to the file, and list the survivors.

    python tests/mutants.py [--count 200] [--seed 0] [--files letir/passes letir/plan] [--jobs 2]

A fault is a changed comparison, constant, operator or condition, or a statement left out. The
tests of a fault: those whose coverage contexts name its line, if ``make coverage`` has written
``.coverage``; else the test file or folder that mirrors the source file, and the laws. First all
faults are planted in functions that are loaded already, which is fast (tests/mutation/planting.py);
what survives is planted in a copy of the repository. The exit status is 1 if more than one fault in
twenty survives; ``tests/mutants_argued.txt`` lists faults that change nothing, with the reason.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script

from letir.ops.record_index import OPERATIONS
from tests.mutation import planting

ROOT = Path(__file__).resolve().parents[1]
ARGUED = Path(__file__).with_name("mutants_argued.txt")
TARGETS = (
    *("letir/passes", "letir/plan", "letir/eval", "letir/ad", "letir/executor"),
    *("letir/ast", "letir/ops/reductions", "letir/ops/elementwise", "letir/ops/shape"),
    *("letir/ops/indexing", "letir/ops/effects"),
)
LAWS = {"letir/ops": ["tests/test_laws.py"], "letir/passes": ["tests/passes/test_pass_laws.py"]}
COMPARISONS = {
    **{ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="},
    **{ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"},
}
OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Mod: "*"}
MAX_TESTS, MAX_TESTS_IN_SESSION = 400, 150  # for one fault
SECONDS = 900  # for the tests of one fault: a fault may be an endless loop, which counts as caught


class Fault:
    """A replacement of the text at a node."""

    def __init__(self, path: str, node: ast.AST, new: str):
        self.path, self.line, self.new = path, node.lineno, new
        self.start = node.lineno, node.col_offset
        self.end = node.end_lineno, node.end_col_offset

    def planted(self, source: str) -> str:
        """The source with the fault."""
        lines = source.encode().splitlines(keepends=True)
        (first, left), (last, right) = self.start, self.end
        lines[first - 1 : last] = [
            lines[first - 1][:left] + self.new.encode() + lines[last - 1][right:]
        ]
        return b"".join(lines).decode()

    def text(self, source: str) -> str:
        """The changed line, as the report and the list of argued faults show it."""
        lines = source.splitlines()
        old = " ".join(" ".join(lines[self.start[0] - 1 : self.end[0]]).split())
        new = " ".join(" ".join(self.planted(source).splitlines()[self.line - 1 :][:1]).split())
        return f"{self.path}: {old} -> {new}"


def replacements(node: ast.AST, source: str) -> Iterator[str]:
    """Texts that would make a fault in place of a node."""

    def text(part: ast.AST) -> str:
        return ast.get_source_segment(source, part) or ""

    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
            yield f"({text(left)}) {COMPARISONS[type(op)]} ({text(right)})"
        case ast.BoolOp(op=op, values=[first, *_, last]):
            yield f"({text(first)})"
            yield f"({text(last)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"bool({text(operand)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            if not isinstance(left, ast.Constant | ast.JoinedStr):
                yield f"({text(left)}) {OPERATORS[type(op)]} ({text(right)})"
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(value)):
            yield str(value + 1)
        case ast.IfExp(body=body, orelse=orelse):
            yield f"({text(body)})"
            yield f"({text(orelse)})"
        case ast.Expr(value=ast.Call()):
            yield "pass"
        case ast.Return(value=ast.Call(args=[ast.Name(id=name), *_])):
            yield f"return {name}"


def parts_of(nodes: list[ast.AST]) -> Iterator[ast.AST]:
    """All nodes in some nodes, without messages of errors: ``raise``, ``assert`` and f-strings.

    Nor ``strict=`` of ``zip``, which asserts that lengths are equal.
    """
    for node in nodes:
        is_strict = isinstance(node, ast.keyword) and node.arg == "strict"
        if not (is_strict or isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr)):
            yield node
            yield from parts_of(list(ast.iter_child_nodes(node)))


def faults_in(path: str) -> Iterator[Fault]:
    """The faults that can be planted inside the functions of a file."""
    source = (ROOT / path).read_text(encoding="utf-8")
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for node in parts_of(function.body):
                for new in replacements(node, source):
                    yield Fault(path, node, new)


def chosen(targets: list[str], count: int, seed: int) -> list[Fault]:
    """``count`` faults, spread over the files as their lines are."""
    paths = [path for target in targets for path in sorted((ROOT / target).rglob("*.py"))]
    paths += [ROOT / target for target in targets if target.endswith(".py")]
    found: dict[tuple, Fault] = {}
    for path in paths:
        for fault in faults_in(path.relative_to(ROOT).as_posix()):
            found[fault.path, fault.start, fault.new] = fault
    draw = random.Random(seed)
    return draw.sample(list(found.values()), min(count, len(found)))


def covering(fault: Fault) -> list[str]:
    """The tests that run the line of a fault, by the contexts of ``.coverage``; none without it."""
    contexts = contexts_of(fault.path).get(fault.line, [])
    return sorted({name.partition("|")[0] for name in contexts if "::" in name})


@cache
def contexts_of(path: str) -> dict[int, list[str]]:
    """{line: contexts} of a source file, by ``.coverage``."""
    if not (ROOT / ".coverage").exists():
        return {}
    from coverage import CoverageData

    data = CoverageData(str(ROOT / ".coverage"))
    data.read()
    return data.contexts_by_lineno(str(ROOT / path))


def mirrored(path: str) -> list[str]:
    """The tests that mirror a source file: its test file, else those of its folder; and laws.

    To a folder belong those of its subfolders that mirror no folder of letir.
    """
    source = Path(path)
    folder = ROOT / "tests" / source.parent.relative_to("letir")
    own = folder / f"test_{source.name}"
    found = [own] if own.exists() else _tests_in(folder)
    while not found:
        folder = folder.parent
        found = _tests_in(folder)
    laws = [test for start, tests in LAWS.items() if path.startswith(start) for test in tests]
    return [*(test.relative_to(ROOT).as_posix() for test in found), *laws]


def _tests_in(folder: Path) -> list[Path]:
    """The test files in a folder and in those of its subfolders that mirror no folder of letir."""
    source = ROOT / "letir" / folder.relative_to(ROOT / "tests")
    others = [x for x in sorted(folder.glob("*/")) if not (source / x.name).is_dir()]
    found = sorted(folder.glob("test_*.py"))
    return found + [test for other in others for test in sorted(other.rglob("test_*.py"))]


def tests_of(fault: Fault, items: list) -> list:
    """The collected tests of a fault: first those of the files that mirror the source file."""
    by_name = {item.nodeid: item for item in items}
    near = mirrored(fault.path)
    of_line = [by_name[name] for name in covering(fault) if name in by_name]
    if not of_line:
        of_line = [item for item in items if item.nodeid.partition("::")[0] in near]
        of_line = [item for item in of_line if concerns(item, fault)]
    return sorted(of_line, key=partial(cost_of, near))[:MAX_TESTS_IN_SESSION]


def cost_of(near: list[str], item: Any) -> tuple[bool, bool]:
    """An order of tests: those near the fault before others, generated examples last."""
    is_generated = hasattr(item.obj, "hypothesis")
    return is_generated, item.nodeid.partition("::")[0] not in near


def concerns(item: Any, fault: Fault) -> bool:
    """Whether a test is not a law of an operation that another file defines."""
    name = item.nodeid.partition("[")[2].rstrip("]")
    module = fault.path.removeprefix("letir/ops/").removesuffix(".py").replace("/", ".")
    if not item.nodeid.startswith("tests/test_laws.py") or module not in OPERATIONS:
        return True
    return not set(name.split("-")).isdisjoint(OPERATIONS[module].split())


def is_caught(fault: Fault, copy: Path) -> bool:
    """Whether a test fails with the fault planted in a copy of the repository."""
    place = copy / fault.path
    before = place.read_text(encoding="utf-8")
    tests = covering(fault)[:MAX_TESTS] or mirrored(fault.path)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        changed = fault.planted(before)
        compile(changed, fault.path, "exec")  # a SyntaxError is an error of this script
        place.write_text(changed, encoding="utf-8")
        run = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=SECONDS, check=False
        )
        return run.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        place.write_text(before, encoding="utf-8")


def survivors_in_one_session(faults: list[Fault], jobs: int) -> list[Fault]:
    """The faults that no test notices that collected tests notice, in children of one process."""
    survivors = []

    def report(number: int, status: int) -> None:
        fault = faults[number]
        shown = {0: "survived", planting.NOT_PLANTED << 8: "not planted"}.get(status, "caught")
        if shown != "caught":
            survivors.append(fault)
        text = fault.text((ROOT / fault.path).read_text(encoding="utf-8"))
        print(f"{shown:12}{fault.line:4} {text}", flush=True)

    files = {test.partition("::")[0] for fault in faults for test in covering(fault)}
    files |= {test for fault in faults if not covering(fault) for test in mirrored(fault.path)}
    tried = [
        (
            ROOT / fault.path,
            fault.planted((ROOT / fault.path).read_text(encoding="utf-8")),
            partial(tests_of, fault),
        )
        for fault in faults
    ]
    planting.run(tried, sorted(files), report, jobs)
    return survivors


def run_share(faults: list[Fault]) -> list[Fault]:
    """The survivors of some faults, in a copy of the repository of their own."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "letir"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "build"))
        survivors = []
        for fault in faults:
            caught = is_caught(fault, copy)
            text = fault.text((ROOT / fault.path).read_text(encoding="utf-8"))
            print("caught  " if caught else "SURVIVED", f"{fault.line:4}", text, flush=True)
            if not caught:
                survivors.append(fault)
        return survivors


def main() -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--files", nargs="+", default=list(TARGETS), metavar="PATH")
    options = parser.parse_args()
    faults = chosen(options.files, options.count, options.seed)
    argued = {line for line in ARGUED.read_text().splitlines() if line and line[0] not in "# "}
    left = survivors_in_one_session(faults, options.jobs)
    with ThreadPoolExecutor(options.jobs) as pool:
        shares = [left[i :: options.jobs] for i in range(options.jobs)]
        survivors = [fault for found in pool.map(run_share, shares) for fault in found]
    texts = [fault.text((ROOT / fault.path).read_text(encoding="utf-8")) for fault in survivors]
    open_ones = [text for text in texts if text not in argued]
    print(
        f"{len(faults)} faults: {len(faults) - len(survivors)} caught, {len(survivors)} survived,"
    )
    print(f"{len(survivors) - len(open_ones)} of them argued in {ARGUED.name}")
    print("\n".join(open_ones))
    return int(len(open_ones) * 20 > len(faults))


if __name__ == "__main__":
    sys.exit(main())
