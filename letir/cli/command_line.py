"""The command line of ``letir``: the table of its commands and their options, and its parser."""

import argparse
from collections.abc import Sequence
from typing import Any

from letir import __version__
from letir.ast.text.archive import MAX_BYTES, MAX_TEXT_BYTES
from letir.cli.program_commands import (
    check_command,
    demo_command,
    diff_command,
    doctor_command,
    export_command,
    grad_command,
    import_command,
    optimize_command,
    run_command,
    show_command,
    trace_command,
    tune_command,
    view_command,
)

EXAMPLES = """\
examples:
  letir demo --quick
  letir trace model.py:loss --arg 'float64[784, 10]' --arg 'float64[n, 784]'
  letir trace model.py:loss --arg weights.npy --arg images.npy -o loss.letir
  letir import classifier.onnx -o classifier.letir
  letir show loss.letir
  letir view model.py:loss --arg weights.npy --arg images.npy -o loss.html
  letir run loss.letir --arg weights.npy --arg images.npy
  letir grad loss.letir -o slope.letir
  letir optimize slope.letir -o fast.letir
  letir export fast.letir -o fast.onnx
"""
EACH = "once for each argument, in the order of the parameters"
_ARGUMENT = f"a .npy file or a number; {EACH}"
_TRACED_ARGUMENT = (
    "a .npy file, a number, or a type such as 'float64[n, 3]' for an argument without a value, "
    f"whose named sizes stay symbolic; {EACH}"
)


def cli_option(*names: str, **settings: Any) -> tuple[tuple, dict]:
    """The arguments of a call of ``add_argument``."""
    return names, settings


_OUTPUT = cli_option("-o", "--output", metavar="FILE", help="where to save it, not print it")
FILE = cli_option("file", metavar="FILE", help="a saved program, or an ONNX model")
_LIMITS = tuple(
    cli_option(name, type=int, default=most, metavar="N", help=f"{about} (default: %(default)s)")
    for name, most, about in (
        ("--max-bytes", MAX_BYTES, "the most bytes that a saved program may unpack to"),
        ("--max-text-bytes", MAX_TEXT_BYTES, "the most bytes of text in it"),
    )
)
SIZES = cli_option(
    "--size",
    action="append",
    default=[],
    metavar="NAME=N",
    help="a number for a named size of the model; others stay symbolic",
)
ARGS = cli_option("--arg", action="append", default=[], metavar="ARG", help=_ARGUMENT)
_TRACED_ARGS = cli_option(
    "--arg", action="append", default=[], metavar="ARG", help=_TRACED_ARGUMENT
)
FUNCTION = "the function, as in model.py:loss or package.model:loss; the module is imported"
_OUT_HELP = (
    "where to save the results: once for each result, or once to have them numbered, y.0.npy, "
    "y.1.npy; by default they are printed"
)
_EXPORTED = "where to write the ONNX model; needs the extra onnx"
DIFFERENTIABLE = "a saved program or ONNX model whose first result is a scalar"
_VIEWED = "a saved program, an ONNX model, or a function, as in model.py:loss or package.model:loss"
_ARGNUMS = "arguments with respect to which to differentiate (default: 0)"
_COSTS = "the file of costs (default: LETIR_COSTS, or letir/costs.json in the folder of settings)"
PASSES = "passes of letir.passes to run, in this order (default: those of letir.jit)"
COMMANDS: tuple[Any, ...] = (
    (
        demo_command,
        "letir demo --quick",
        cli_option("--quick", action="store_true", help="fewer passes over the data"),
        cli_option("--save", metavar="FILE", help="where to save the trained program"),
    ),
    (
        doctor_command,
        "letir doctor --json",
        cli_option("--json", action="store_true", help="as JSON, for programs and bug reports"),
    ),
    (
        tune_command,
        "letir tune",
        cli_option("-o", "--output", metavar="FILE", help=_COSTS),
    ),
    (
        trace_command,
        "letir trace model.py:loss --arg 'float64[n, 3]' --arg 0.5 -o loss.letir",
        cli_option("function", metavar="FILE.py:FUNCTION", help=FUNCTION),
        _TRACED_ARGS,
        _OUTPUT,
    ),
    (
        import_command,
        "letir import model.onnx -o model.letir --size batch=8",
        cli_option("file", metavar="MODEL.onnx", help="the model; needs the extra onnx"),
        _OUTPUT,
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
        *_LIMITS,
        cli_option("-o", "--output", required=True, metavar="FILE", help=_EXPORTED),
        cli_option("--opset", type=int, metavar="N", help="the version of ONNX's operators"),
    ),
    (
        show_command,
        "letir show loss.letir --listing",
        FILE,
        *_LIMITS,
        cli_option("--listing", action="store_true", help="bare: no types, no source lines"),
        cli_option("--full", action="store_true", help="all binds, every element of constants"),
    ),
    (
        view_command,
        "letir view model.py:loss --arg x.npy --arg 0.5 -o loss.html",
        cli_option("file", metavar="FILE", help=_VIEWED),
        *_LIMITS,
        _TRACED_ARGS,
        cli_option("-o", "--output", metavar="FILE", help="the page (default: NAME.html)"),
        SIZES,
        cli_option("--no-gradient", action="store_true", help="without the backward program"),
    ),
    (check_command, "letir check loss.letir", FILE, *_LIMITS),
    (
        run_command,
        "letir run loss.letir --arg x.npy --arg 0.5 --out y.npy",
        FILE,
        *_LIMITS,
        ARGS,
        cli_option("--out", action="append", default=[], metavar="FILE", help=_OUT_HELP),
    ),
    (
        grad_command,
        "letir grad loss.letir -o slope.letir --argnums 0 2",
        cli_option("file", metavar="FILE", help=DIFFERENTIABLE),
        *_LIMITS,
        _OUTPUT,
        cli_option("--argnums", type=int, nargs="+", default=[0], metavar="N", help=_ARGNUMS),
        cli_option("--value", action="store_true", help="keep the value as the first result"),
    ),
    (
        optimize_command,
        "letir optimize slope.letir -o fast.letir",
        FILE,
        *_LIMITS,
        _OUTPUT,
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
        *_LIMITS,
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
        """Print the commands: the help of ``letir`` without a command."""
        top.print_help()
        return 0

    top.set_defaults(command=shown_help, parser=top)
    commands = top.add_subparsers(metavar="COMMAND")
    for run, example, *options in COMMANDS:
        name, about = run.__name__.removesuffix("_command"), run.__doc__
        added = commands.add_parser(
            name, help=about, description=about, epilog=f"example: {example}"
        )
        added.set_defaults(command=run, parser=added)
        for names, settings in options:
            added.add_argument(*names, **settings)
    return top


def parse_command_line(words: Sequence[str]) -> argparse.Namespace:
    """The command and its options; a wrong command line ends the process with exit code 2.

    The message for words that are left over has the usage of the command that got them.
    """
    if words and words[0] == "help":  # letir help run
        words = [*words[1:], "--help"]
    options, rest = build_parser().parse_known_args(words)
    if rest:
        takes_values = "arg" in options and not rest[0].startswith("-")
        remedy = f": write --arg {rest[0]}" if takes_values else ""
        options.parser.error(f"unrecognized arguments: {' '.join(rest)}{remedy}")
    return options
