"""The ``letir`` command: ``demo``, ``trace``, ``import``, ``show``, ``view``, ``check``, ``run``,
``grad``, ``optimize``, ``diff``.

Programs are read from files that ``letir.save`` wrote, and from ONNX models. Exit codes: 0 for
success, 1 for an error (a message on stderr, no traceback), 2 for an invalid command line.
"""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np

import letir
from letir import (
    Lambda,
    LetirError,
    __version__,
    check,
    diff,
    dumps,
    grad,
    load,
    passes,
    save,
    trace,
    value_and_grad,
)
from letir.ast.text.archive import MOST_BYTES, MOST_TEXT_BYTES
from letir.command_arguments import function_in, parse_argument, parse_size
from letir.demo.story import FULL, QUICK, tell_story
from letir.eval.evaluator import run_flat
from letir.executor.default_pipeline import optimize_program
from letir.executor.explanation import PassReport
from letir.passes.pipeline import run_pipeline
from letir.tracing.source_locations import is_users

EXAMPLES = """\
examples:
  letir demo --quick
  letir trace model.py:loss --arg weights.npy --arg images.npy -o loss.letir
  letir import classifier.onnx -o classifier.letir
  letir show loss.letir
  letir view model.py:loss --arg weights.npy --arg images.npy -o loss.html
  letir run loss.letir --arg weights.npy --arg images.npy
  letir grad loss.letir -o slope.letir
  letir optimize slope.letir -o fast.letir
  letir export fast.letir -o fast.onnx
"""
# functions that letir.passes exports and that are not passes
NO_PASSES = frozenset(["is_differentiable", "propagate_requires_grad", "register", "unregister"])
ARGUMENT = "a .npy file or a number; once for each argument, in the order of the parameters"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` and return its exit code."""
    options = build_parser().parse_args(argv)
    try:
        code = options.command(options)
        sys.stdout.flush()  # not left to exit, where a broken pipe would not be caught
        return code
    except BrokenPipeError:  # the reader has closed the pipe, as in `letir show f | head`
        # otherwise Python's flush at exit would fail too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("letir: interrupted", file=sys.stderr)
        return 130  # as shells report it
    except Exception as error:  # a file of the user may raise any
        print("\n".join([f"letir: {error_message(error)}", *error_notes(error)]), file=sys.stderr)
        return 1


def error_message(error: Exception) -> str:
    """The message of an error, with the file name for an OSError.

    For an error of the user's file: with its class, and the line of that file.
    """
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, LetirError):  # the line of the command itself says nothing
        lines = str(error).splitlines()
        return "\n".join([x for x in lines if not x.startswith(f"  at {sys.argv[0]}:")])
    place = ""
    if isinstance(error, SyntaxError):
        place = f"{error.filename}:{error.lineno}: "
    else:
        frames = traceback.extract_tb(error.__traceback__)
        place = next(
            (f"{x.filename}:{x.lineno}: " for x in frames[::-1] if is_users(x.filename)), ""
        )
    message = error.msg if isinstance(error, SyntaxError) else error
    return f"{place}{type(error).__name__}: {message}"


def error_notes(error: Exception) -> list[str]:
    """The notes of an error: the let line, the file."""
    return [f"  {note.removeprefix('letir: ')}" for note in getattr(error, "__notes__", ())]


# ---- the commands ----


def demo_command(options: argparse.Namespace) -> int:
    """Train a classifier written in plain NumPy."""
    return 0 if tell_story(QUICK if options.quick else FULL, options.save) else 1


def trace_command(options: argparse.Namespace) -> int:
    """Record a function of a Python file."""
    program = trace(function_in(options.function), *map(parse_argument, options.arg))
    save(program, options.output)
    print(f"{options.output}: {describe_program(program)}")
    return 0


def import_command(options: argparse.Namespace) -> int:
    """Make a program of an ONNX model."""
    sizes = dict(map(parse_size, options.size))
    program = check(letir.onnx.load(options.file, options.params, sizes=sizes))
    save(program, options.output)
    print(f"{options.output}: {describe_program(program)}")
    return 0


def export_command(options: argparse.Namespace) -> int:
    """Make an ONNX model of a program."""
    program = program_in(options.file, options)
    model = letir.onnx.export(program, options.output, opset=options.opset or letir.onnx.OPSET)
    print(f"{options.output}: {describe_program(program)}, {counted(model.graph.node, 'node')}")
    return 0


def show_command(options: argparse.Namespace) -> int:
    """Print a program."""
    if options.listing:
        print(program_in(options.file, options).listing().rstrip())
    elif options.full:
        print(dumps(program_in(options.file, options)))
    else:
        print(content_of(options.file, options))
    return 0


def view_command(options: argparse.Namespace) -> int:
    """Write a page on which to explore a program: one HTML file."""
    name, args = options.file, list(map(parse_argument, options.arg))
    shown: Callable | Lambda | letir.Gradient
    if ":" in name and not os.path.exists(name):
        shown, title = function_in(name), name.rpartition(":")[2]
    elif options.size:
        sizes = dict(map(parse_size, options.size))
        shown, title = check(letir.onnx.load(name, sizes=sizes)), Path(name).stem
    else:
        shown, title = content_of(name, options), Path(name).stem
    path = options.output or f"{title}.html"
    page = letir.viz.explorer(shown, *args, gradient=not options.no_gradient, title=title)
    page.save(path)
    print(f"{path}: {page}")
    return 0


def check_command(options: argparse.Namespace) -> int:
    """Check that a file holds a well-formed program."""
    program = program_in(options.file, options)  # which checks it, for all commands
    print(f"{options.file}: well-formed, {describe_program(program)}")
    return 0


def run_command(options: argparse.Namespace) -> int:
    """Replay a program on arrays."""
    program = program_in(options.file, options)
    paths = output_paths(options.out, len(program.ret.args))  # wrong options fail before a long run
    results = run_flat(program, list(map(parse_argument, options.arg)))
    for path, result in zip(paths, results, strict=False):
        np.save(path, result, allow_pickle=False)
    if not paths:
        print(*results, sep="\n")
    return 0


def grad_command(options: argparse.Namespace) -> int:
    """Differentiate a program."""
    argnums = options.argnums[0] if len(options.argnums) == 1 else tuple(options.argnums)
    program = program_in(options.file, options)
    if is_onnx(options.file) and [arg.type.shape for arg in program.ret.args] != [()]:
        program = letir.onnx.weighted_sum(program)
    program = (value_and_grad if options.value else grad)(program, argnums)
    write_program(program, options.output)
    print(f"{options.output}: {describe_program(program)}")
    return 0


def optimize_command(options: argparse.Namespace) -> int:
    """Run the optimising passes, and say what each of them changed."""
    program, steps = program_in(options.file, options), []

    def note(*step) -> None:
        steps.append(PassReport.of(*step))

    if options.passes:
        found = run_pipeline(tuple(map(pass_named, options.passes)), program, observe=note)
    else:
        found = optimize_program(program, exact=options.exact, observe=note)
    write_program(found, options.output)
    for step in steps:
        if step.change:
            print(f"{step.name:22} {step.before} -> {step.after}  {step.change}")
    print(f"{options.output}: {describe_program(found)}")
    return 0


def diff_command(options: argparse.Namespace) -> int:
    """Show two programs side by side, aligned."""
    print(diff(program_in(options.first, options), program_in(options.second, options)))
    return 0


# ---- files, passes and arguments ----


def pass_named(name: str) -> Callable:
    """The pass of this name."""
    if name not in passes.__all__ or name in NO_PASSES:
        known = ", ".join(sorted(set(passes.__all__) - NO_PASSES))
        raise LetirError(f"there is no pass {name!r}\n  there are {known}")
    return getattr(passes, name)


def content_of(path: str, limits: argparse.Namespace) -> Lambda | letir.Gradient:
    """The program or Gradient in a file, or the program of an ONNX model, checked."""
    if is_onnx(path):
        return check(letir.onnx.load(path))
    return load(path, max_bytes=limits.max_bytes, max_text_bytes=limits.max_text_bytes)


def program_in(path: str, limits: argparse.Namespace) -> Lambda:
    """The program in a file, or of an ONNX model. Raises LetirError for a Gradient, which is two
    programs.
    """
    program = content_of(path, limits)
    if not isinstance(program, Lambda):
        raise LetirError(
            f"{path} holds a {type(program).__name__}: only `letir show` takes one\n"
            "  save the program itself: letir.save(gradient.df, path)"
        )
    return program


def write_program(program: Lambda, path: str) -> None:
    """Save a program, or an ONNX model of it if the name of the file says so."""
    if is_onnx(path):
        letir.onnx.export(program, path)
    else:
        save(program, path)


def is_onnx(path: str) -> bool:
    """Whether a file is an ONNX model, by its name."""
    return path.lower().endswith(".onnx")


def describe_program(program: Lambda) -> str:
    """The numbers of parameters, binds and results of a program, as text."""
    parts = (program.params, "parameter"), (program, "bind"), (program.ret.args, "result")
    return ", ".join(counted(*part) for part in parts)


def counted(things: Sized, word: str) -> str:
    """The number of things, as in 3 binds."""
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"


def output_paths(given: list[str], count: int) -> list[str]:
    """A path for each result: as given, or numbered if one path is given for several results."""
    if len(given) in (0, count):
        return given
    if len(given) > 1:
        raise LetirError(
            f"the program has {count} results: give --out once or {count} times, "
            f"not {len(given)} times\n  leave --out away to print the results"
        )
    stem, dot, suffix = given[0].rpartition(".")
    return [f"{stem}.{i}.{suffix}" if dot else f"{suffix}.{i}" for i in range(count)]


# ---- the command line ----


def cli_option(*names: str, **settings: Any) -> tuple[tuple, dict]:
    """The arguments of a call of ``add_argument``."""
    return names, settings


def output_option(about: str) -> tuple[tuple, dict]:
    """The option for the file that a command writes."""
    return cli_option("-o", "--output", required=True, metavar="FILE", help=about)


FILE = cli_option("file", metavar="FILE", help="a saved program, or an ONNX model")
LIMITS = tuple(
    cli_option(name, type=int, default=most, metavar="N", help=f"{about} (default: %(default)s)")
    for name, most, about in (
        ("--max-bytes", MOST_BYTES, "the most bytes that a saved program may unpack to"),
        ("--max-text-bytes", MOST_TEXT_BYTES, "the most bytes of text in it"),
    )
)
SIZES = cli_option(
    "--size",
    action="append",
    default=[],
    metavar="NAME=N",
    help="a number for a named size of the model; others stay symbolic",
)
ARGS = cli_option("--arg", action="append", default=[], metavar="ARG", help=ARGUMENT)
OUT_HELP = (
    "where to save the results: once for each result, or once to have them numbered, y.0.npy, "
    "y.1.npy; by default they are printed"
)
DIFFERENTIABLE = "a saved program or ONNX model whose first result is a scalar"
VIEWED = "a saved program, an ONNX model, or a function, as in model.py:loss or package.model:loss"
ARGNUMS = "arguments with respect to which to differentiate (default: 0)"
PASSES = "passes of letir.passes to run, in this order (default: those of letir.jit)"
COMMANDS: tuple[Any, ...] = (
    (
        demo_command,
        "letir demo --quick",
        cli_option("--quick", action="store_true", help="fewer passes over the data"),
        cli_option("--save", metavar="FILE", help="keep the trained program in this file"),
    ),
    (
        trace_command,
        "letir trace model.py:loss --arg x.npy --arg 0.5 -o loss.letir",
        cli_option("function", metavar="FILE.py:FUNCTION", help="the function; FILE.py is run"),
        ARGS,
        output_option("where to save the program"),
    ),
    (
        import_command,
        "letir import model.onnx -o model.letir --size batch=8",
        cli_option("file", metavar="MODEL.onnx", help="the model; needs the extra onnx"),
        output_option("where to save the program"),
        cli_option(
            "--params",
            choices=("constants", "inputs"),
            default="constants",
            help="whether the weights are constants (the default) or further parameters",
        ),
        SIZES,
    ),
    (
        export_command,
        "letir export slope.letir -o slope.onnx",
        FILE,
        *LIMITS,
        output_option("where to write the ONNX model; needs the extra onnx"),
        cli_option("--opset", type=int, metavar="N", help="the version of ONNX's operators"),
    ),
    (
        show_command,
        "letir show loss.letir --listing",
        FILE,
        *LIMITS,
        cli_option("--listing", action="store_true", help="bare: no types, no source lines"),
        cli_option("--full", action="store_true", help="all binds, every element of constants"),
    ),
    (
        view_command,
        "letir view model.py:loss --arg x.npy --arg 0.5 -o loss.html",
        cli_option("file", metavar="FILE", help=VIEWED),
        *LIMITS,
        ARGS,
        cli_option("-o", "--output", metavar="FILE", help="the page (default: NAME.html)"),
        SIZES,
        cli_option("--no-gradient", action="store_true", help="without the backward program"),
    ),
    (check_command, "letir check loss.letir", FILE, *LIMITS),
    (
        run_command,
        "letir run loss.letir --arg x.npy --arg 0.5 --out y.npy",
        FILE,
        *LIMITS,
        ARGS,
        cli_option("--out", action="append", default=[], metavar="FILE", help=OUT_HELP),
    ),
    (
        grad_command,
        "letir grad loss.letir -o slope.letir --argnums 0 2",
        cli_option("file", metavar="FILE", help=DIFFERENTIABLE),
        *LIMITS,
        output_option("where to save the gradient program"),
        cli_option("--argnums", type=int, nargs="+", default=[0], metavar="N", help=ARGNUMS),
        cli_option("--value", action="store_true", help="keep the value as the first result"),
    ),
    (
        optimize_command,
        "letir optimize slope.letir -o fast.letir",
        FILE,
        *LIMITS,
        output_option("where to save the optimised program"),
        cli_option("--passes", nargs="+", default=[], metavar="NAME", help=PASSES),
        cli_option(
            "--exact", action="store_true", help="change no rounding: keep the order of sums"
        ),
    ),
    (
        diff_command,
        "letir diff slope.letir fast.letir",
        cli_option("first", metavar="FILE", help="a saved program"),
        cli_option("second", metavar="FILE", help="another one"),
        *LIMITS,
    ),
)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    top = argparse.ArgumentParser(
        prog="letir",
        description="Record NumPy functions as programs; show, check, run and change them.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"letir {__version__}")

    def shown_help(options: argparse.Namespace) -> int:
        """Print what there is to do next."""
        top.print_help()
        return 0

    top.set_defaults(command=shown_help)
    commands = top.add_subparsers(metavar="COMMAND")
    for run, example, *options in COMMANDS:
        name, about = run.__name__.removesuffix("_command"), run.__doc__
        added = commands.add_parser(
            name, help=about, description=about, epilog=f"example: {example}"
        )
        added.set_defaults(command=run)
        for names, settings in options:
            added.add_argument(*names, **settings)
    return top


if __name__ == "__main__":
    sys.exit(main())
