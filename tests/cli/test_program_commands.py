"""The ``letir`` command: what it prints, what it writes, and how it fails."""

import runpy
import subprocess
import sys

import numpy as np
import pytest

from letir import ShapeDtype, Size, __version__, diff, differentiate, load, parse, save, trace
from letir.cli import main
from letir.cli.command_line import COMMANDS

MODEL = """\
import numpy as np

SCALE = 2.0

def loss(w, x):
    return (np.tanh(x @ w) ** 2).sum()

def scaled(x, s):
    return x * s, x.sum()

def unsupported(x):
    return np.linalg.qr(x, "raw")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "model.py").write_text(MODEL)
    np.save("w.npy", np.ones(3))
    np.save("x.npy", np.arange(6.0).reshape(2, 3) / 6)
    return tmp_path


@pytest.fixture
def saved(folder):
    save(trace(lambda w, x: (np.tanh(x @ w) ** 2).sum(), np.ones(3), np.ones((2, 3))), "loss.letir")
    save(trace(lambda x, s: (x * s, x.sum()), np.ones(3), 2.0), "scaled.letir")
    return folder


def failure(capsys, *argv: str) -> list[str]:
    """The lines on stderr of a command that fails with exit code 1."""
    assert main(argv) == 1
    out, err = capsys.readouterr()
    assert not out
    assert "Traceback" not in err
    return err.splitlines()


def test_trace_records_a_function_in_a_file(folder, capsys):
    assert main(["trace", "model.py:loss", "--arg", "w.npy", "--arg", "x.npy", "-o", "f"]) == 0

    assert capsys.readouterr().out == "f: 2 parameters, 4 binds, 1 result\n"
    w, x = np.load("w.npy"), np.load("x.npy")
    assert (np.tanh(x @ w) ** 2).sum() == load("f")(w, x)


def test_view_writes_a_page_of_a_program_or_of_a_function(saved, capsys):
    assert main(["view", "loss.letir"]) == 0
    assert capsys.readouterr().out == (
        "loss.html: explorer of loss: 2 parameters, 4 binds, 1 result; backward: 10 binds\n"
    )
    args = ["--arg", "w.npy", "--arg", "x.npy", "--no-gradient"]
    assert main(["view", "model.py:loss", *args, "-o", "page.html"]) == 0
    assert main(["view", "model:loss", *args, "-o", "page.html"]) == 0
    assert capsys.readouterr().out == 2 * (
        "page.html: explorer of loss: 2 parameters, 4 binds, 1 result\n"
    )
    assert (saved / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_without_a_command_the_commands_and_examples_are_shown(capsys):
    assert main([]) == 0

    shown = capsys.readouterr().out
    assert "letir demo --quick" in shown
    assert all(run.__name__.removesuffix("_command") in shown for run, *_ in COMMANDS)


def test_help_of_a_command_is_shown_also_by_the_word_help(capsys):
    for words in (["run", "--help"], ["help", "run"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        assert "usage: letir run" in capsys.readouterr().out


def test_words_that_are_left_over_are_shown_with_the_usage_of_their_command(capsys):
    for words, remedy in ((["run", "f", "3"], ": write --arg 3"), (["show", "f", "--html"], "")):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
        error = capsys.readouterr().err
        assert f"usage: letir {words[0]}" in error
        assert error.endswith(f"error: unrecognized arguments: {words[2]}{remedy}\n")


def test_a_number_may_be_an_argument(folder, capsys):
    assert main(["trace", "model.py:scaled", "--arg", "w.npy", "--arg", "0.5", "-o", "f"]) == 0

    assert load("f")(np.ones(3), 2.0)[0].max() == 2.0


def test_a_function_may_import_modules_next_to_its_file(folder, capsys):
    (folder / "beside_model.py").write_text("def twice(x):\n    return 2 * x\n")
    (folder / "user.py").write_text("from beside_model import twice\n")

    assert main(["trace", "user.py:twice", "--arg", "w.npy", "-o", "f"]) == 0


def test_show_prints_the_program(saved, capsys):
    assert main(["show", "loss.letir"]) == 0

    assert str(load("loss.letir")) + "\n" == capsys.readouterr().out


def test_show_listing_prints_one_bind_per_line(saved, capsys):
    assert main(["show", "loss.letir", "--listing"]) == 0

    assert capsys.readouterr().out.splitlines()[0] == "%2 = matmul %1, %0"


def test_show_full_prints_the_whole_program(saved, capsys):
    table = np.arange(50.0)  # made outside of the function: a constant
    save(trace(lambda x: x + table, np.ones(50)), "table.letir")
    assert main(["show", "table.letir", "--full"]) == 0

    assert "48.0, 49.0}" in capsys.readouterr().out


def test_check_reports_that_a_program_is_well_formed(saved, capsys):
    assert main(["check", "loss.letir"]) == 0

    expected = "loss.letir: well-formed, 2 parameters, 4 binds, 1 result\n"
    assert expected == capsys.readouterr().out


def test_only_show_accepts_a_gradient_of_two_programs(saved, capsys):
    save(differentiate(load("loss.letir")), "both.letir")

    assert main(["show", "both.letir"]) == 0
    assert "grad_of[matmul]" in capsys.readouterr().out
    assert failure(capsys, "check", "both.letir") == [
        "letir: both.letir holds a Gradient: only `letir show` takes one",
        "  save the program itself: letir.save(gradient.df, path)",
    ]


def test_run_writes_the_result(saved, capsys):
    assert main(["run", "loss.letir", "--arg", "w.npy", "--arg", "x.npy", "--out", "y.npy"]) == 0

    w, x = np.load("w.npy"), np.load("x.npy")
    assert (np.tanh(x @ w) ** 2).sum() == np.load("y.npy")


def test_run_prints_results_that_are_not_written(saved, capsys):
    assert main(["run", "scaled.letir", "--arg", "w.npy", "--arg", "2.0"]) == 0

    assert capsys.readouterr().out == "[2. 2. 2.]\n3.0\n"


@pytest.mark.parametrize(
    ("given", "written"),
    [(["y.npy"], ["y.0.npy", "y.1.npy"]), (["a.npy", "b.npy"], ["a.npy", "b.npy"])],
)
def test_several_results_are_written_to_numbered_or_named_files(given, written, saved):
    outs = [word for name in given for word in ("--out", name)]

    assert main(["run", "scaled.letir", "--arg", "w.npy", "--arg", "2.0", *outs]) == 0

    assert [np.load(name).max() for name in written] == [2.0, 3.0]


def test_grad_writes_the_gradient_program(saved, capsys):
    assert main(["grad", "loss.letir", "-o", "slope.letir", "--argnums", "0", "1"]) == 0

    w, x = np.load("w.npy"), np.load("x.npy")
    by_w, by_x = load("slope.letir")(w, x)
    outer = 2 * np.tanh(x @ w) * (1 - np.tanh(x @ w) ** 2)
    np.testing.assert_allclose(by_w, outer @ x)
    np.testing.assert_allclose(by_x, np.outer(outer, w))


def test_grad_can_keep_the_value(saved, capsys):
    assert main(["grad", "loss.letir", "-o", "slope.letir", "--value"]) == 0

    assert "slope.letir: 2 parameters" in capsys.readouterr().out
    assert (
        load("loss.letir")(np.ones(3), np.ones((2, 3)))
        == load("slope.letir")(np.ones(3), np.ones((2, 3)))[0]
    )


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ("show nowhere.letir", "letir: nowhere.letir: No such file or directory"),
        ("show w.npy", "letir: w.npy is not a letir file: File is not a zip file"),
        ("show model.py", "letir: model.py is Python: a saved program or an ONNX model is exp"),
        ("run loss.letir --arg w.npy", "letir: the program takes 2 arrays, found 1"),
        ("run loss.letir --arg x.npy --arg x.npy", "letir: arguments do not fit the program"),
        ("run loss.letir --arg model.py --arg x.npy", "letir: model.py is not a .npy file"),
        (
            "run scaled.letir --arg w.npy --arg 2.0 --out a --out b --out c",
            "letir: the program has 2 results: give --out once or 2 times, not 3 times",
        ),
        ("grad loss.letir -o f --argnums 7", "letir: argnums: there is no positional argument 7"),
        (
            "grad scaled.letir -o f",
            "letir: grad needs a",
        ),
        (
            "trace model.py:los -o f",
            "letir: model.py has no function 'los'; it has loss, scaled, unsupported",
        ),
        ("trace model.py:SCALE -o f", "letir: model.py has no function 'SCALE'"),
        ("trace nowhere.py:loss -o f", "letir: nowhere.py: No such file or directory"),
        ("trace loss -o f", "letir: loss: a Python file and a function are expected"),
        ("trace notes.txt:loss -o f", "letir: notes.txt:loss: a Python file and a function"),
        (
            "trace model.py:loss --arg x.npy --arg words.npy -o f",
            "letir: argument x: letir computes",
        ),
        ("trace model.py:loss --arg w.npy -o f", "letir: the function loss(w, x) is called with"),
        ("view model.py:loss --size n=3 -o f", "letir: model.py:loss is a function: --size is for"),
        ("view model.py:loss -o f", "letir: the function loss(w, x) is called with (): missing"),
        ("demo --quick --save no/digits.letir", "letir: no/digits.letir: No such file or"),
        ("trace model.py:loss --arg w.npy --arg x.npy -o no/f", "letir: no/f: No such file or"),
        ("run loss.letir --arg w.npy --arg x.npy --out no/y.npy", "letir: no/y.npy: No such file"),
        ("run loss.letir --arg folder --arg x.npy", "letir: folder: Is a directory"),
        ("optimize nowhere.letir -o f", "letir: nowhere.letir: No such file or directory"),
        ("optimize damaged.letir -o f", "letir: damaged.letir is not a letir file: File is not a"),
        ("optimize loss.letir -o no/f", "letir: no/f: No such file or directory"),
        ("optimize loss.letir -o folder", "letir: folder: Is a directory"),
        ("optimize loss.letir -o f --passes nothing", "letir: there is no pass 'nothing'"),
        ("diff loss.letir nowhere.letir", "letir: nowhere.letir: No such file or directory"),
        ("diff loss.letir damaged.letir", "letir: damaged.letir is not a letir file"),
        ("diff loss.letir folder", "letir: folder: Is a directory"),
        ("check folder", "letir: folder: Is a directory"),
        ("grad damaged.letir -o f", "letir: damaged.letir is not a letir file"),
        ("trace model.py:unsupported --arg x.npy -o f", "letir: qr: mode 'raw'"),
    ],
)
def test_an_error_prints_one_line_and_exits_with_code_1(argv, expected, saved, capsys):
    (saved / "folder").mkdir()
    (saved / "damaged.letir").write_bytes((saved / "loss.letir").read_bytes()[:200])
    np.save("words.npy", np.array(["word"]))
    assert failure(capsys, *argv.split())[0].startswith(expected)
    assert not (saved / "f").exists()


SLIPS = """\
def fails(x):
    return 1 / 0
def decides(x):
    return x if x.sum() > 0 else -x
def reads(x):
    return open("nothing.txt").read()
def endless(x):
    return endless(x)
def exits(x):
    raise SystemExit(3)
def leaves(x):
    raise GeneratorExit("gone")
def asserts(x):
    assert False, "no"
def made(x):
    return object()
def named(x, *, y):
    return x + y
def lists(x):
    return [x[i] for i in (0, 9)]
async def waits(x):
    return x
def yields(x):
    yield x
"""


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ("slips.py", "slips.py: a Python file and a function are expected"),
        ("slips.py:", "slips.py has no function ''"),
        (":fails", ":fails: a Python file and a function are expected"),
        ("slips.fails", "slips.fails: a Python file and a function"),
        ("slips.py:fails:x", "slips.py:fails:x: a Python file and a function"),
        ("slips.py:fail", "slips.py has no function 'fail'; it has asserts, decides"),
        ("numpy:transpos", "numpy has no function 'transpos'; it has transpose, "),
        ("nowhere.py:f", "nowhere.py: No such file or directory"),
        ("folder:f", "folder:f: a Python file and a function"),
        (
            "no.module:f",
            "no.module:f: a Python file and a function are expected, and there is no module 'no.mo",
        ),
        ("1abc:f", "1abc:f: a Python file and a function"),
        ("imports.py:f", "imports.py:1: ModuleNotFoundError: No module named 'nothing_of"),
        ("exits.py:f", "exits.py ends the process while it is imported, by exit('bye')"),
        ("nul.py:f", "nul.py: SyntaxError: source code"),
        ("model.py:loss --arg nothing.npy", "--arg 'nothing.npy': No such file or directory"),
        ("model.py:loss --arg=", "--arg '': No such file"),
        ("model.py:loss --arg folder", "folder: Is a directory"),
        ("model.py:loss --arg empty.npy", "empty.npy is not a .npy file of numbers"),
        ("model.py:loss --arg objects.npy", "objects.npy is not a .npy file of numbers"),
        ("model.py:loss --arg several.npz", "several.npz is not a .npy file of numbers"),
        ("model.py:loss --arg float64[n,3", "--arg 'float64[n,3' is not a type"),
        ("model.py:loss --arg flot64[n]", "--arg 'flot64[n]' is not a type: expected a dtype"),
        ("model.py:loss --arg float64[-3]", "--arg 'float64[-3]' is not a type: a size is neg"),
        ("model.py:loss --arg float64[n;3]", "--arg 'float64[n;3]' is not a type: expected a s"),
        ("model.py:loss --arg float64[,]", "--arg 'float64[,]' is not a type"),
        ("model.py:loss --arg object[3]", "--arg 'object[3]' is not a type"),
        ("model.py:loss --arg float64[2] --arg float64[n,3]", "matmul: inner sizes differ"),
        ("model.py:loss --arg 99999999999999999999 --arg 1", "argument w: the integer 99999"),
        ("slips.py:fails --arg 1", "slips.py:2: ZeroDivisionError"),
        ("slips.py:decides --arg float64[n]", "the truth value of a traced value"),
        ("slips.py:reads --arg 1", "nothing.txt: No such file"),
        ("slips.py:endless --arg 1", "slips.py:8: RecursionError"),
        ("slips.py:exits --arg 1", "slips.py:10: SystemExit: 3"),
        ("slips.py:leaves --arg 1", "slips.py:12: GeneratorExit: gone"),
        ("slips.py:asserts --arg 1", "slips.py:14: AssertionError: no"),
        ("slips.py:made --arg 1", "the traced function returned an object of type object"),
        ("slips.py:named --arg 1", "the function named(x, *, y) is called with"),
        ("slips.py:lists --arg float64[3]", "index 9 is out of bounds"),
        ("slips.py:waits --arg 1", "the traced function returned an object of type coroutine"),
        ("slips.py:yields --arg 1", "the traced function returned an object of type generator"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
def test_a_slip_in_a_trace_causes_no_traceback(argv, expected, folder, capsys):
    (folder / "folder").mkdir()
    (folder / "slips.py").write_text(SLIPS)
    (folder / "imports.py").write_text("import nothing_of_this_name\n")
    (folder / "exits.py").write_text("raise SystemExit('bye')\n")
    (folder / "nul.py").write_text("x = 1\0\n")
    (folder / "empty.npy").write_bytes(b"")
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez("several.npz", x=np.ones(3))

    line = failure(capsys, "trace", *argv.split())[0]

    assert line.removeprefix("letir: ").removeprefix(f"{folder}/").startswith(expected)


def test_trace_prints_the_program_of_abstract_arguments(folder, capsys):
    args = ["--arg", "float64[2*m]", "--arg", "float64[n, 2*m]"]
    assert main(["trace", "model.py:loss", *args]) == 0
    shown = capsys.readouterr().out
    assert parse(shown).params[1].type == ShapeDtype(("n", 2 * Size.named("m"))).type

    assert main(["trace", "model:scaled", "--arg", "float32[3]", "--arg", "float64*[]"]) == 0
    assert "%2: float32[3] = mul(%0, %1)" in capsys.readouterr().out


def test_view_takes_abstract_arguments(folder, capsys):
    argv = ["view", "model.py:loss", "--arg", "float64[3]", "--arg", "float64[n, 3]"]
    assert main(argv) == 0

    assert "float64[n, 3]" in (folder / "loss.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(x: return", "program.py:1: SyntaxError: invalid syntax"),
        ("1 / 0", "program.py:1: ZeroDivisionError: division by zero"),
        (
            "def f(x):\n    return x.nothing",
            "program.py:2: AttributeError: 'numpy.ndarray' object has no attribute 'nothing'",
        ),
    ],
)
def test_an_error_of_a_users_file_names_its_line(folder, capsys, code, expected):
    (folder / "program.py").write_text(code)

    (line,) = failure(capsys, "trace", "program.py:f", "--arg", "x.npy", "-o", "f")[:1]

    assert expected in line


def test_a_failing_replay_names_the_let_line(folder, capsys):
    save(trace(lambda x: x * 2 if x.sum() > 0 else x, np.ones(3)), "f.letir")
    np.save("negative.npy", -np.ones(3))

    lines = failure(capsys, "run", "f.letir", "--arg", "negative.npy")

    assert lines[0].startswith("letir: the program was recorded where this was True")
    assert any("guard(" in line for line in lines)


@pytest.mark.parametrize("argv", [["bogus"], ["export", "f"], ["trace"]])
def test_an_invalid_command_line_exits_with_code_2(argv, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(argv)

    assert exit_.value.code == 2
    assert "usage: letir" in capsys.readouterr().err


def test_optimize_reports_what_each_pass_changed(saved, capsys):
    assert main(["grad", "loss.letir", "-o", "slope"]) == 0
    assert main(["optimize", "slope", "-o", "fast", "--exact"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("fuse ") and "+1 fused" in line for line in lines)
    assert lines[-1].startswith("fast: 2 parameters, ")
    args = np.load("w.npy"), np.load("x.npy")
    np.testing.assert_array_equal(load("fast")(*args), load("slope")(*args))


@pytest.mark.parametrize("command", ["grad", "optimize"])
def test_programs_that_are_not_saved_are_printed(command, saved, capsys):
    assert main([command, "loss.letir", "-o", "done.letir"]) == 0
    capsys.readouterr()
    assert main([command, "loss.letir"]) == 0

    assert capsys.readouterr().out == f"{load('done.letir')}\n"


def test_optimize_runs_the_named_passes(saved, capsys):
    argv = ["optimize", "loss.letir", "-o", "same", "--passes", "dead_code", "unroll"]
    assert main(argv) == 0

    assert load("same") == load("loss.letir")
    assert capsys.readouterr().out == "same: 2 parameters, 4 binds, 1 result\n"


@pytest.mark.parametrize("name", ["nothing", "register", "__getattr__"])
def test_an_unknown_pass_is_an_error_that_lists_the_passes(name, saved, capsys):
    lines = failure(capsys, "optimize", "loss.letir", "-o", "same", "--passes", name)

    assert lines[0] == f"letir: there is no pass {name!r}"
    assert "common_subexpressions, " in lines[1]


def test_diff_shows_two_programs_side_by_side(saved, capsys):
    assert main(["diff", "loss.letir", "scaled.letir"]) == 0

    assert capsys.readouterr().out == f"{diff(load('loss.letir'), load('scaled.letir'))}\n"


@pytest.mark.parametrize("name", [run.__name__.removesuffix("_command") for run, *_ in COMMANDS])
def test_help_shows_an_example(name, capsys):
    with pytest.raises(SystemExit) as exit_:
        main([name, "--help"])

    assert exit_.value.code == 0
    assert f"example: letir {name}" in capsys.readouterr().out


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])

    assert f"letir {__version__}\n" == capsys.readouterr().out


def test_a_closed_pipe_causes_no_traceback(saved):
    table = np.arange(1e5)
    save(trace(lambda x: x + table, np.ones(100_000)), "large.letir")
    command = [sys.executable, "-m", "letir", "show", "--full", "large.letir"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as shown:
        shown.stdout.readline()
        shown.stdout.close()
        errors = shown.stderr.read()

    assert shown.returncode == 1
    assert errors == b""


def test_view_gives_sizes_of_a_model_numbers(folder, capsys):
    pytest.importorskip("onnx")
    f = trace(lambda x: np.tanh(x).sum(axis=1), ShapeDtype(("batch", 3)))
    save(f, "rows.letir")
    assert main(["export", "rows.letir", "-o", "rows.onnx"]) == 0

    assert main(["view", "rows.onnx"]) == 0
    assert main(["view", "rows.onnx", "--size", "batch=2", "-o", "two.html"]) == 0
    assert "float64[batch, 3]" in (folder / "rows.html").read_text(encoding="utf-8")
    assert "float64[2, 3]" in (folder / "two.html").read_text(encoding="utf-8")


def test_export_writes_an_onnx_model_and_grad_one_of_gradients(saved, capsys):
    onnx = pytest.importorskip("onnx")

    assert main(["export", "loss.letir", "-o", "loss.onnx"]) == 0
    assert main(["grad", "loss.onnx", "-o", "slope.onnx"]) == 0

    onnx.checker.check_model("slope.onnx", full_check=True)
    shape = onnx.load("slope.onnx").graph.output[0].type.tensor_type.shape
    assert list(load("loss.letir").params[0].type.shape) == [d.dim_value for d in shape.dim]


# ---- files from strangers ----

PROGRAMS = {
    "zeros": "lambda { %0 = zeros(shape=(1000000000000,), dtype=float64); return %0 }",
    "inv": "lambda %0: float64[2, 2] { %1 = inv(%0); return %1 }",
    "power": "lambda %0: int64*[] { %1 = power(10, %0); return %1 }",
    "ill": "lambda %0: float64[2] { %1: float32[2] = exp(%0); return %1 }",
}


@pytest.fixture
def hostile(folder):
    """Programs that fail when they run, one that check refuses, and damaged arrays."""
    for name, text in PROGRAMS.items():
        save(parse(text), f"{name}.letir")
    np.save("singular.npy", np.zeros((2, 2)))
    content = (folder / "singular.npy").read_bytes()
    (folder / "claims.npy").write_bytes(content.replace(b"(2, 2)", b"(1000000000000,)"))
    (folder / "header.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00" + b"{" * 118)
    (folder / "empty.onnx").write_bytes(b"")
    (folder / "damaged.onnx").write_bytes(b"\x08\x07\x12")
    return folder


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ("run zeros.letir", "letir: MemoryError: Unable to allocate"),
        ("run inv.letir --arg singular.npy", "letir: LinAlgError: Singular matrix"),
        ("run power.letir --arg 1000000", "letir: OverflowError: power(10, 1000000)"),
        ("run inv.letir --arg claims.npy", "letir: claims.npy is not a .npy file of numbers"),
        ("run inv.letir --arg header.npy", "letir: header.npy is not a .npy file of numbers"),
        ("check inv.letir --max-bytes 20", "letir: its members have"),
        ("show inv.letir --max-text-bytes 20", "letir: its texts have more than 20 bytes"),
        *(
            (command, "letir: its program is not well formed: exp: its result is float64[2]")
            for command in (
                *("check ill.letir", "show ill.letir", "run ill.letir --arg x.npy"),
                *("optimize ill.letir -o f", "grad ill.letir -o f", "diff inv.letir ill.letir"),
            )
        ),
    ],
)
def test_a_hostile_file_causes_no_traceback(argv, expected, hostile, capsys):
    assert failure(capsys, *argv.split())[0].startswith(expected)
    assert not (hostile / "f").exists()


@pytest.mark.parametrize("command", ["check", "show", "run", "import"])
@pytest.mark.parametrize("name", ["empty.onnx", "damaged.onnx"])
def test_a_damaged_model_causes_no_traceback(command, name, hostile, capsys):
    pytest.importorskip("onnx")
    output = ("-o", "f") if command == "import" else ()

    assert failure(capsys, command, name, *output)[0].startswith(f"letir: {name} is not an ONNX")


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (3,)])
def test_arrays_of_any_shape_are_arguments(shape, folder, capsys):
    save(parse("lambda %0 { %1 = neg(%0); return %1 }"), "neg.letir")
    np.save("given.npy", np.asfortranarray(np.ones(shape)))

    assert main(["run", "neg.letir", "--arg", "given.npy", "--out", "found.npy"]) == 0
    np.testing.assert_array_equal(-np.ones(shape), np.load("found.npy"))


def test_an_interrupt_causes_no_traceback(saved, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("letir.cli.program_commands.describe_program", interrupted)

    assert main(["check", "loss.letir"]) == 130
    assert capsys.readouterr().err == "letir: interrupted\n"


def test_the_package_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["letir", "show", "missing.letir"])

    with pytest.raises(SystemExit) as ended:
        runpy.run_module("letir", run_name="__main__")

    assert ended.value.code == main(["show", "missing.letir"]) != 0
    assert "missing.letir" in capsys.readouterr().err
