"""Every public function and method of letir has annotations for its parameters and its result."""

import ast
from collections.abc import Iterator

import pytest

from tests.test_layout import FILES, tree_of

# Their texts are copied into generated programs, which import NumPy alone.
COPIED = {("ops/random/generator_states.py", "state_of")}


def public_functions(body: list[ast.stmt], in_class: bool = False) -> Iterator[tuple]:
    """(function, whether it has a receiver) for functions without underscore, also in classes."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                is_static = "staticmethod" in map(ast.unparse, node.decorator_list)
                if not name.startswith("_"):
                    yield node, in_class and not is_static
            case ast.ClassDef(name=name) if not name.startswith("_"):
                yield from public_functions(node.body, in_class=True)
            case ast.If() | ast.Try():
                yield from public_functions([*node.body, *node.orelse], in_class)


def bare_parts(node: ast.FunctionDef, has_receiver: bool) -> list[str]:
    """The names of the parameters without an annotation, and ``return`` if the result has none."""
    named = [*node.args.posonlyargs, *node.args.args][has_receiver:]
    rest = (*node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
    bare = [arg.arg for arg in (*named, *rest) if arg is not None and arg.annotation is None]
    return bare if node.returns is not None else [*bare, "return"]


def test_public_functions_are_annotated():
    bare = []
    for file in FILES:
        for node, has_receiver in public_functions(tree_of(file).body):
            missing = bare_parts(node, has_receiver)
            if missing and (file, node.name) not in COPIED:
                bare.append(f"{file}:{node.lineno} {node.name}: {', '.join(missing)}")

    assert [] == bare


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(x: int) -> int: ...", []),
        ("def f(x, *y, z=1, **k): ...", ["x", "z", "y", "k", "return"]),
        ("class A:\n    def f(self, x) -> int: ...", ["x"]),
        ("class A:\n    @staticmethod\n    def f(x) -> int: ...", ["x"]),
        ("if True:\n    def f(): ...", ["return"]),
        ("def _f(x): ...", []),
        ("class _A:\n    def f(self, x): ...", []),
    ],
)
def test_parts_without_annotation_are_found(text, expected):
    functions = public_functions(ast.parse(text).body)

    assert expected == [part for function in functions for part in bare_parts(*function)]
