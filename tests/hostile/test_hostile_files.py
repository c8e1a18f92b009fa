"""Files and texts from strangers: a result or one of letir's errors, at bounded cost."""

import contextlib
import dataclasses
import io
import json
import re
import resource
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import letir as lt
from letir.errors import LetirError, ParseError
from tests.each_sample import in_one_test
from tests.hostile.mutations import OLD, seeds, untyped

ROOT = Path(__file__).parents[2]
LARGE = "20000000"
PRIME = (1 << 61) - 1  # Python's hashes of integers are remainders by it


@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_files_end_in_a_result_or_an_error_of_letir(count):
    """``make fuzz`` runs a hundred thousand with a new seed.

    A refusal may take ten seconds instead of one, as the machine of the tests may be busy.
    """
    command = [sys.executable, "-m", "tests.hostile.trials", f"--count={count}", "--calls=1"]
    command.append("--refusal=10")
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (run.returncode, run.stdout.split(":")[0]) == (0, f"{count} mutated files of seed 0"), (
        run.stdout + run.stderr
    )


TOO_MANY_OPERANDS = {
    "a program": "{ %1: float64[2] = mul(%0, 2.0, %0); return %1 }",
    "a body": "{ %1: float64[2] = fori_loop(0, 3, %0, body=lambda %2: int64*[], %3: float64[2] "
    "{ %4: float64[2] = mul(%3, 2.0, %3); return %4 }); return %1 }",
}


@pytest.mark.parametrize(
    "run",
    [
        lambda f, x: lt.jit(f)(x),
        lambda f, x: lt.jit(f, exact=True)(x),
        lambda f, x: lt.compile(f),
        lambda f, x: lt.differentiate(f, [True]),
        lambda f, x: lt.grad(lambda x: f(x).sum())(x),
    ],
    ids=["jit", "exact", "compile", "differentiate", "grad"],
)
@pytest.mark.parametrize("text", TOO_MANY_OPERANDS.values(), ids=TOO_MANY_OPERANDS)
def test_too_many_operands_in_an_unchecked_text_are_named(text, run):
    program = lt.parse("lambda %0: float64[2] " + text)

    with pytest.raises(lt.DTypeError, match="multiply: 2 operands are expected, found 3"):
        run(program, np.ones(2))


# ---- bounded cost ----


def body(line: str) -> str:
    """A program with one bind."""
    return f"lambda %0: float64[1000000000000] {{\n  {line}\n  return %0\n}}"


KEYS = ", ".join(f"{i * PRIME}: *" for i in range(100_000))
SUMS = ", ".join(f"a{i}+b{i}" for i in range(30))
BOMBS = {
    "keys with one hash": f"lambda in ({{{KEYS}}}) {{ return () }}",
    "a thousand million results": body("%1 = split(%0, sections=1000000000)"),
    "spaces in a comment": body(f"%1 = exp(%0)  #{' ' * 1_000_000}x") + "x",
    "spaces after a source line": body(f"%1 = exp(%0)  # a:1: {' ' * 1_000_000}x y") + "x",
    "colons in a comment": body(f"%1 = exp(%0)  #{':1 ;' * 100_000}x") + "x",
    "a size of many terms": f"lambda %0: float64[{'+'.join(f'n{i}' for i in range(100_000))}] {{",
    "a product of many sums": f"lambda %0: float64[{SUMS}] {{\n"
    "  %1 = reshape(%0, shape=(-1,))\n  return %1\n}",
    "a million axes": f"lambda %0: float64[{', '.join('1' * 1_000_000)}] {{ return %0 }}",
    "many classes": f"lambda in ({', '.join(f'A{i}(x=*)' for i in range(100_000))}) {{",
    "deep nesting": "lambda in " + "(" * 1_000_000,
    "a polynomial of claimed coefficients": "lambda %0: int8[9223372036854775807] {\n"
    "  %1: float64[] = polyval(%0, 0.5)\n  return %1\n}",
    "a quotient of claimed length": "lambda %0: float64[1000000000000], %1: float64[3] {\n"
    "  %2, %3 = polydiv(%0, %1, length=2)\n  return %2\n}",
    "a large exponent": body("%1 = matrix_power(%0, n=inf)"),
}


@in_one_test
@pytest.mark.parametrize("name", BOMBS)
def test_a_text_is_refused_quickly(name):
    """Each would take minutes, or gigabytes, where its size is not bounded.

    The limit is one second; the machine of the tests may be ten times as slow.
    """
    begin = time.process_time()

    with pytest.raises(LetirError):
        lt.check(lt.parse(BOMBS[name]))
    assert time.process_time() - begin < 10


def claims(text: str) -> set[str]:
    """``text``, without types of results, with a number or a size replaced by a large one."""
    text = untyped(text)
    head = text.index("{\n")
    found = [match.span() for match in re.finditer(r"(?<![%\w.])\d+(?=[^\w.{])", text)]
    equal = {re.sub(rf"\b{text[a:b]}\b", LARGE, text[:head]) for a, b in found if b < head}
    return {text[:a] + LARGE + text[b:] for a, b in found} | {
        start + text[head:] for start in equal
    }


def most_memory() -> int:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def print_greedy_texts() -> None:
    """Print the texts whose check takes more than 64 MiB."""
    for text in {claim for seed in seeds() if seed.count("\n") < 9 for claim in claims(seed)}:
        before = most_memory()
        with contextlib.suppress(LetirError):
            lt.check(lt.parse(text))
        if most_memory() - before > 64:
            print(text)


def test_no_type_rule_makes_the_elements_that_a_text_claims():
    """A histogram of 10^8 bins took 12 seconds and 2 GiB to check.

    In a process of its own, whose greatest memory has not been reached by other tests.
    """
    call = f"from {__name__} import print_greedy_texts as call; call()"
    command = [sys.executable, "-c", call]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert run.stdout == ""


@pytest.mark.parametrize("version", [0, -1, 2, 1.5, "1", True, None])
def test_only_formats_that_exist_are_read(tmp_path, version):
    head = json.dumps({**json.loads(HEAD), "format": version}).encode()
    (tmp_path / "f").write_bytes(zipped(("letir.json", head), ("program.txt", PROGRAM)))

    with pytest.raises(ParseError):
        lt.load(tmp_path / "f")


def zipped(*members: tuple[str, bytes]) -> bytes:
    """A deflated zip; names may repeat."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


HEAD = json.dumps({"format": 1, "ops": {}, "programs": ["program"], "about": {}}).encode()
PROGRAM = b"lambda { return 1 }"


def declared(count: int) -> bytes:
    """The same bytes many times in the list of the members of a zip."""
    content = zipped(("letir.json", HEAD), ("program.txt", PROGRAM))
    at = content.index(b"PK\x01\x02")
    end = content.rindex(b"PK\x05\x06")
    entry = content[at : content.index(b"PK\x01\x02", at + 1)]
    size = count * len(entry)
    tail = bytearray(content[end:])
    tail[12:16] = size.to_bytes(4, "little")
    return content[:at] + entry * count + bytes(tail)


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: zipped(("letir.json", HEAD), ("program.txt", b"\n" * (200 << 20))), "a hundred"),
        (lambda: zipped(("letir.json", HEAD), ("program.txt", b" \n" * (2 << 20))), "white space"),
        (lambda: zipped(("letir.json", HEAD), ("letir.json", HEAD)), "2 of its members"),
        (lambda: zipped(("letir.json", b"[]," * (1 << 20)), ("program.txt", PROGRAM)), "too many"),
        (lambda: declared(300_000), "the list of its members"),
    ],
    ids=["blank lines", "fewer blank lines", "two heads", "many lists", "many members"],
)
def test_a_zip_is_refused_quickly_within_256_mebibytes(tmp_path, content, message):
    path = tmp_path / "f.letir"
    path.write_bytes(content())
    code = (
        "import re, sys, time, letir as lt\n"
        # the peak memory; ru_maxrss would count the process that started this one
        "def peak():\n"
        "    return int(re.search(r'VmHWM:\\s*(\\d+) kB', open('/proc/self/status').read())[1])\n"
        "lt.parse('lambda { return 1 }')\n"
        "before, begin = peak(), time.process_time()\n"
        "try:\n    lt.load(sys.argv[1])\n"
        "except lt.ParseError as error:\n    print(error)\n"
        "print(time.process_time() - begin)\n"
        "print(peak() - before)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *text, seconds, kibibytes = run.stdout.splitlines()

    assert message in "\n".join(text)
    assert (float(seconds) < 10, int(kibibytes) < 256 << 10) == (True, True)


def test_texts_of_a_file_have_a_limit_of_their_own(tmp_path):
    lt.save(lt.parse("lambda %0 { return %0 }"), tmp_path / "f")

    with pytest.raises(ParseError, match="more than 10 bytes\n  pass a greater max_text_bytes"):
        lt.load(tmp_path / "f", max_text_bytes=10)


def test_an_array_that_no_program_refers_to_is_not_read(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(
        zipped(("letir.json", HEAD), ("program.txt", PROGRAM), ("constants/0.npy", b"nonsense"))
    )

    assert lt.load(path) == lt.parse(PROGRAM.decode())


# ---- Gradients ----


def with_numbers(path: Path, **numbers) -> Path:
    """A saved Gradient with other numbers."""
    with zipfile.ZipFile(OLD / "gradient.letir") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    head = json.loads(members["letir.json"])
    head["about"] |= numbers
    members["letir.json"] = json.dumps(head).encode()
    path.write_bytes(zipped(*members.items()))
    return path


@pytest.mark.parametrize(
    "numbers",
    [
        *({"f_real_outputs": n} for n in (10**30, 10**9, -1, True, "1", None, 1.0, [1], 0, 1)),
        *({"df_input_vjps": n} for n in ([], [0], [1, 0], [0, 0], [0, 99], 0, {}, [None])),
        *({"df_input_captured_inputs": n} for n in ([], [99], [-1], ["a"], [0, 1, 2, 3, 4])),
        *({"df_input_captured_outputs": n} for n in ([], [10**30], [0.5], None)),
        *({"df_output_vjps": n} for n in ([], [0], [0, 1, 9], [[0]], "012")),
    ],
    ids=str,
)
def test_a_gradient_whose_numbers_do_not_fit_is_not_loaded(tmp_path, numbers):
    with pytest.raises(ParseError, match="holds a Gradient whose parts do not fit"):
        lt.load(with_numbers(tmp_path / "g", **numbers))


# ---- what check accepts, runs ----


@in_one_test
@pytest.mark.parametrize(
    "text",
    [
        "lambda %0, %1 out (*, *, *) { return (%0, %1) }",
        "lambda %0, %1 in ((*,), {}) { return %0 }",
        "lambda %0 in (*,) { return %0 }",
        "lambda %0 in ([*], {}) { return %0 }",
        "lambda %0 in ((*,), {1: None}) { return %0 }",
        "lambda %0 out (*, static('1')) { return (%0, %0) }",
        "lambda %0: float64[3] { %1 = index(%0, item=@6); return %1 }",
        "lambda %0: float64[3] { %1 = ufunc_reduce(%0, ufunc=2); return %1 }",
        f"lambda %0: float64[3] {{ %1 = tile(%0, reps=({'1, ' * 65})); return %1 }}",
        f"lambda %0: float64[3] {{ %1 = index(%0, item=({'None, ' * 64})); return %1 }}",
        "lambda %0: uint64[2] { %1 = random_draw(%0, distribution=7, shape=(2,), dtype=float64); "
        "return %1 }",
        "lambda %0 { %1 = scan(%0, body=lambda %2 { return %2 }, n_carry=0, n_xs=1, "
        "length=lambda %3 { return %3 }, reverse=False); return %1 }",
        "lambda %0 { %1 = scan(%0, body=lambda %2 { return %2 }, n_carry=0, n_xs=1, "
        "length=2, reverse=lambda { return 1 }); return %1 }",
        "lambda %0: float64[3], %1: float64[2] { %2 = odeint(%0, %1, body=lambda %3, %4 "
        "{ return %3 }, rtol=(1.0, 2.0)); return %2 }",
        "lambda %0 { %1 = when_defined(%0, n_cts=(1,), body=lambda %2 { return %2 }); return %1 }",
        "lambda %0 { %1 = when_defined(%0, n_cts=2, body=lambda %2 { return %2 }); return %1 }",
        "lambda %0, %1 { %2 = grad_of(%0, %1, op=exp, n_cts=1.0, body=lambda %3, %4 { return %4 })"
        "; return %2 }",
    ],
)
def test_check_refuses_what_cannot_run(text):
    with pytest.raises(LetirError):
        lt.check(lt.parse(text))


def test_an_attribute_that_no_rule_saw_is_an_error_of_letir():
    """Without types there is no type rule to refuse it."""
    program = lt.check(lt.parse("lambda %0 { %1 = ufunc_reduce(%0, ufunc=2); return %1 }"))
    for run in (program, lt.compile(program), lt.jit(program)):
        with pytest.raises(lt.DTypeError, match="not the name of a ufunc"):
            run(np.ones(3))


@pytest.mark.parametrize("transform", [lt.differentiate, lambda f: lt.jvp(f, (1.0,), (1.0,))])
def test_an_attribute_that_only_a_derivative_rule_saw_is_an_error_of_letir(transform):
    """The type rule of ``assemble`` needs the operand that gives the shape, which has no type."""
    text = "lambda %0 { %1 = assemble(%0, items=(0,), shape=(2, bool)); return %1 }"
    with pytest.raises(lt.DTypeError, match=r"assemble: its (vjp|jvp) rule"):
        transform(lt.parse(text))


def test_an_operand_too_many_without_a_type_is_an_error_of_letir():
    """Its type rule runs when the types of the arguments are known, in a pass of ``jit``."""
    text = """lambda %0: float64[3], %1: float64[] {
      %2 = cond(True, %0, %1, on_true=lambda %3: float64[3], %4: float64[] {
        %5 = sin(%3)
        %6 = norm(%5, %4)
        return %6
      }, on_false=lambda %7: float64[3], %8: float64[] { return %8 })
      return %2
    }"""
    with pytest.raises(lt.DTypeError, match="norm"):
        lt.jit(lt.check(lt.parse(text)))(np.ones(3), np.float64(1.0))


def test_a_group_of_unknown_types_is_computed_without_a_kernel():
    program = lt.parse("""lambda %0, %1 {
      %2 = fused(%0, %1, body=lambda %3, %4 { %5 = sin(%3); %6 = xlogy(%5, %4); return %6 })
      return %2
    }""")

    x = np.ones(3)
    np.testing.assert_array_equal(program(x, x), lt.compile(program)(x, x))


def test_to_source_of_an_index_without_its_array_is_an_error_of_letir():
    with pytest.raises(lt.DTypeError, match="index: its source rule"):
        lt.to_source(lt.parse("lambda %0 { %1 = index(%0, item=@2); return %1 }"))


def test_a_tolerance_that_no_rule_saw_is_an_error_of_letir():
    pytest.importorskip("scipy")
    body = "lambda %2, %3 { return %2 }"
    program = lt.parse(
        f"lambda %0, %1 {{ %4 = odeint(%0, %1, body={body}, rtol=((1, 2), (3, 4)))\n return %4 }}"
    )
    with pytest.raises(lt.DTypeError, match="tolerance"):
        program(np.ones(2), np.arange(3.0))


def test_a_program_without_types_is_recorded_with_those_of_its_arguments():
    program = lt.parse("lambda %0, %1 { %2 = power(%0, %1); return %2 }")

    np.testing.assert_array_equal(
        np.full(3, 8.0), lt.jit(program)(np.full(3, 2.0), np.full(3, 3.0))
    )


def test_a_callback_keeps_its_exception():
    def fails(x):
        raise KeyError("mine")

    program = lt.trace(lt.opaque(fails, lt.ShapeDtype((3,))), lt.ShapeDtype((3,)))

    with pytest.raises(KeyError, match="mine"):
        program(np.ones(3))


# ---- classes ----

MADE: list = []


@dataclasses.dataclass
class Config:
    rate: object
    _hidden: object = None

    def __post_init__(self):
        MADE.append(self)


def test_a_loaded_program_makes_no_instance_of_a_class_that_its_file_names(tmp_path):
    program = lt.trace(lambda x: Config(x * 2, x), 1.0)
    lt.save(program, tmp_path / "f")
    MADE.clear()
    loaded = lt.load(tmp_path / "f")
    found = loaded(3.0)

    assert (MADE, loaded == program) == ([], True)
    assert (type(found).__name__, found.rate, found._hidden, tuple(found)) == (
        *("Config", 6.0, 3.0, (6.0, 3.0)),
    )


def test_a_trusted_class_is_made(tmp_path):
    lt.save(lt.trace(lambda x: Config(x * 2), 1.0), tmp_path / "f")

    assert lt.load(tmp_path / "f", classes=(Config,))(3.0) == Config(6.0)
    assert lt.parse(lt.dumps(lt.load(tmp_path / "f")), classes=[Config])(3.0) == Config(6.0)


def test_a_trusted_class_of_other_fields_is_an_error():
    with pytest.raises(ParseError, match="its class has the fields rate, _hidden"):
        lt.parse("lambda %0 out Config(rate=*) { return %0 }", classes=(Config,))


@pytest.mark.parametrize("classes", [Config, (int,), ("Config",), 3])
def test_only_classes_with_fields_can_be_trusted(classes):
    with pytest.raises(lt.DTypeError, match="classes"):
        lt.parse("lambda { return 1 }", classes=classes)
