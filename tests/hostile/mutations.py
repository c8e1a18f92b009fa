"""Mutated texts, zips and Gradients: files as a stranger might send them.

Everything is drawn from one ``random.Random``, so that a seed gives the same files again.
"""

import io
import json
import random
import re
import zipfile
from functools import cache
from pathlib import Path

OLD = Path(__file__).parents[1] / "data" / "saved_files"
TEXTS = ("operations", "control_flow", "control_flow_gradient", "named_sizes", "constants", "batch")
_WORD = re.compile(r"%\d+|-?\d[\d.]*(?:e[-+]?\d+)?|\w+|\S")
_LOCAL = re.compile(r"%\d+")
_VALUE = re.compile(r"(?<==)(?:[^\s,(){}\[\]]+|\([^(){}]*\))")
_CALL = re.compile(r"\b[a-z_][\w.]*(?=\()")
_TYPE = re.compile(r"\b[a-z]+\d*\*?\[[^\[\]]*\]")
_ANY_TYPE = re.compile(rf"(%\d+(?::[\w.]+)?): {_TYPE.pattern}")
_BOUND_TYPE = re.compile(
    rf"{_ANY_TYPE.pattern}(?= =|, %\d+[^\n]* = )"
)  # types of the results of binds
_TREE = re.compile(r" (?:in|out) [^\n]*?(?= (?:out|\{\n))")
VALUES = (
    *("0", "-1", "1", "2", "3", "7", "1000000000", "1000000000000", "9223372036854775808"),
    *("-9223372036854775808", "1.5", "-0.0", "1e308", "nan", "inf", "None", "True", "False"),
    *("Undef", "'a'", "''", "()", "(0,)", "(0, 1)", "(-1, 2)", "(1, (2, 'a'))", "1:2", "::-1"),
    *("...", "@", "@6", "(@, 1)", "(@3, ...)", "float32", "bool", "int64", "complex128"),
    *("float64[3]", "float64[n]", "n", "2*n+1", "(n//2)", "float32(1.5)", "int8(300)"),
    *("float64[2]{1.0, nan}", "bool[0]{}", "complex(1.0, -0.0)", "((0, 1), (1, 0))"),
    *("lambda { return 1 }", "lambda %90 { return %90 }", "lambda %90, %91 { return (%91, %90) }"),
    "lambda %90: float64[3] { %91 = neg(%90); return %91 }",
)
TYPES = (
    *("float64[3]", "float64[]", "float64*[]", "int64*[]", "int64[3]", "bool[3]", "float32[3]"),
    *("complex128[2]", "float64[0]", "float64[2, 3]", "float64[n]", "float64[n, n+1]", "uint8[1]"),
    *("float64[1000000000000]", "float64[1000000, 1000000]", "int8[9223372036854775807]"),
    "float64[_k]",
)
TREES = (
    *("*", "None", "()", "(*,)", "(*, *)", "(*, *, *)", "[*]", "{'a': *}", "{1: *, 'a': *}", "'x'"),
    *("((*,), {})", "((), {})", "((*, *), {})", "((*,), {'k': *})", "((static('1'),), {})"),
    *("(*, {})", "((*,), [])", "Point(x=*, y=*)", "(Point(x=*),)", "static('1')", "{(1, 2): *}"),
    *("OrderedDict({'b': *})", "defaultdict({'b': *})", "deque([*, *])", "{nan: *}", "{}"),
)


@cache
def seeds() -> tuple[str, ...]:
    """The texts that are mutated: one of each operation, and larger ones."""
    found = []
    for name in TEXTS:
        text = (OLD / f"{name}.txt").read_text(encoding="utf-8")
        found += [part for part in re.split(r"^# .*\n", text, flags=re.M) if part]
    return tuple(found)


@cache
def files() -> tuple[bytes, ...]:
    """The files that are mutated."""
    return tuple(
        path.read_bytes() for path in sorted(OLD.glob("*.letir")) if path.stem != "operations"
    )


@cache
def calls() -> tuple[str, ...]:
    """The names of all operations in the seeds."""
    return tuple(sorted({name for text in seeds() for name in _CALL.findall(text)}))


def untyped(text: str) -> str:
    """``text`` without the types of results."""
    return _BOUND_TYPE.sub(r"\1", text)


def _replaced(draw: random.Random, text: str, pattern: re.Pattern, others) -> str:
    """``text`` with one match of ``pattern`` replaced by one of ``others``."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = draw.choice(found)
    return text[: match.start()] + draw.choice(others) + text[match.end() :]


def _with_other_local(draw: random.Random, text: str) -> str:
    return _replaced(draw, text, _LOCAL, [*set(_LOCAL.findall(text)), "%99", "2", "1.5", "None"])


def _with_other_tree(draw: random.Random, text: str) -> str:
    tree = f" {draw.choice(('in', 'out'))} {draw.choice(TREES)}"
    if _TREE.search(text):
        return _replaced(draw, text, _TREE, [tree])
    return text.replace(" {\n", f"{tree} {{\n", 1)


def _with_other_lines(draw: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
    match draw.randrange(3):
        case 0:
            del lines[i]
        case 1:
            lines.insert(j, lines[i])
        case 2:
            lines[i], lines[j] = lines[j], lines[i]
    return "".join(lines)


def _with_other_characters(draw: random.Random, text: str) -> str:
    at = draw.randrange(len(text))
    new = draw.choice(["", *"%(){}[]:=,;#@*.\n0n'\\", "\x00", "٣", "\ud800", text[at : at + 9]])
    return text[:at] + new + text[at + draw.randrange(3) :]


def _with_other_word(draw: random.Random, text: str) -> str:
    return _replaced(draw, text, _WORD, _WORD.findall(text) + list(VALUES))


def mutated_text(draw: random.Random) -> str:
    """A seed after one to three changes, most of them of a kind that keeps it a text."""
    text = draw.choice(seeds())
    match draw.randrange(4):
        case 0:
            text = untyped(text)
        case 1:
            text = _ANY_TYPE.sub(r"\1", text)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        match draw.randrange(10):
            case 0 | 1 | 2:
                text = _replaced(draw, text, _VALUE, VALUES)
            case 3:
                text = _replaced(draw, text, _TYPE, TYPES)
            case 4:
                text = _replaced(draw, text, _CALL, calls())
            case 5:
                text = _with_other_local(draw, text)
            case 6:
                text = _with_other_tree(draw, text)
            case 7:
                text = _with_other_lines(draw, text)
            case 8:
                text = _with_other_word(draw, text)
            case _:
                text = _with_other_characters(draw, text) if text else text
    return text


def _mutated_json(draw: random.Random, value):
    """A JSON value with one part replaced."""
    if draw.random() < 0.3 or not value or type(value) not in (dict, list):
        pool = (0, -1, 1, 2, 99, 10**9, 10**30, 1.5, True, None, "f", "", [], {}, [0], [0, 0], [9])
        return draw.choice(pool)
    key = draw.choice(list(value)) if type(value) is dict else draw.randrange(len(value))
    copy = value.copy()
    match draw.randrange(4):
        case 0:
            del copy[key]
        case 1 if type(copy) is list:
            copy.append(draw.choice((0, 1, 2, -1, 10**9)))
        case _:
            copy[key] = _mutated_json(draw, value[key])
    return copy


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _zipped(members: list[tuple[str, bytes]]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


def mutated_file(draw: random.Random) -> bytes:
    """A saved program or Gradient with other bytes, members, texts or numbers."""
    content = draw.choice(files())
    kind = draw.randrange(4)
    if kind == 0:
        changed = bytearray(content)
        for _ in range(draw.choice((1, 2, 9))):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        return bytes(changed[: draw.choice((None, None, draw.randrange(len(changed))))])
    members = list(_members(content).items())
    at = draw.randrange(len(members))
    name, old = members[at]
    if kind == 1:
        other = draw.choice(members)
        members[at] = draw.choice(((name, other[1]), (other[0], old), (name, old[:-1])))
    elif name.endswith(".json"):
        members[at] = name, json.dumps(_mutated_json(draw, json.loads(old))).encode()
    elif name.endswith(".txt"):
        text = old.decode()
        change = draw.choice((_with_other_local, _with_other_tree, _with_other_word))
        members[at] = name, change(draw, text).encode("utf-8", "surrogatepass")
    else:
        changed = bytearray(old)
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        members[at] = name, bytes(changed)
    return _zipped(members)


def mutated_gradient(draw: random.Random) -> bytes:
    """A saved Gradient with other numbers."""
    members = _members((OLD / "gradient.letir").read_bytes())
    head = json.loads(members["letir.json"])
    for _ in range(draw.choice((1, 1, 2))):
        head["about"] = _mutated_json(draw, head["about"])
    members["letir.json"] = json.dumps(head).encode()
    if draw.random() < 0.3:
        name = draw.choice(("f.txt", "df.txt", "results.txt"))
        change = draw.choice((_with_other_local, _with_other_tree, _with_other_lines))
        members[name] = change(draw, members[name].decode()).encode("utf-8", "surrogatepass")
    return _zipped(list(members.items()))
