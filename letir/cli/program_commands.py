"""The commands of ``letir`` on programs: a function for each, which returns its exit code."""

import argparse
import json
import os
from collections.abc import Callable, Sized
from pathlib import Path

import numpy as np

import letir
from letir import (
    DTypeError,
    Lambda,
    LetirError,
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
from letir.cli.command_arguments import (
    load_function,
    parse_argument,
    parse_traced_argument,
    size_argument,
    traced_arguments,
)
from letir.cli.machine_report import machine_report, report_text
from letir.demo.walkthrough import FULL, QUICK, run_demo
from letir.eval.evaluator import run_flat
from letir.executor.default_pipeline import optimize_program
from letir.executor.explanation import PassReport
from letir.executor.kernels.tuning import save_costs, tuned_costs
from letir.kernels.machine_costs import costs_file
from letir.passes.pipeline import run_pipeline
from letir.viz.terminal_colors import print_program

# functions that letir.passes exports and that are not passes
NO_PASSES = frozenset(["is_differentiable", "propagate_requires_grad", "register", "unregister"])


def demo_command(options: argparse.Namespace) -> int:
    """Train a classifier written in plain NumPy."""
    if options.save and not Path(options.save).absolute().parent.is_dir():  # before it trains
        raise FileNotFoundError(2, os.strerror(2), options.save)
    return 0 if run_demo(QUICK if options.quick else FULL, options.save) else 1


def doctor_command(options: argparse.Namespace) -> int:
    """Report what letir finds on this machine, and give advice."""
    report = machine_report()
    print(json.dumps(report, indent=2) if options.json else report_text(report))
    return 0


def tune_command(options: argparse.Namespace) -> int:
    """Measure what NumPy and kernels cost here, which decides what becomes a kernel."""
    file = options.output or costs_file()
    if file is None:
        raise DTypeError("LETIR_COSTS is empty, so no costs are read\n  name a file with -o")
    costs = tuned_costs()
    save_costs(costs, file)
    print(f"{costs}\n\nwritten to {file}")
    return 0


def trace_command(options: argparse.Namespace) -> int:
    """Record a function of a Python file, and print its program, or save it."""
    function = load_function(options.function)
    program = trace(function, *traced_arguments(function, options.arg))
    write_program(program, options.output)
    print_result(program, options.output)
    return 0


def import_command(options: argparse.Namespace) -> int:
    """Make a program of an ONNX model, and print it, or save it."""
    sizes = dict(map(size_argument, options.size))
    program = check(letir.onnx.load(options.file, options.params, sizes=sizes))
    write_program(program, options.output)
    print_result(program, options.output)
    return 0


def export_command(options: argparse.Namespace) -> int:
    """Make an ONNX model of a program."""
    program = load_program(options.file, options)
    model = letir.onnx.export(program, options.output, opset=options.opset or letir.onnx.OPSET)
    print(
        f"{options.output}: {describe_program(program)}, {counted_text(model.graph.node, 'node')}"
    )
    return 0


def show_command(options: argparse.Namespace) -> int:
    """Print a program."""
    if options.listing:
        print_program(load_program(options.file, options).listing().rstrip())
    elif options.full:
        print_program(dumps(load_program(options.file, options)))
    else:
        print_program(str(load_content(options.file, options)))
    return 0


def view_command(options: argparse.Namespace) -> int:
    """Write a page on which to explore a program: one HTML file."""
    name, title = options.file, Path(options.file).stem
    sizes = dict(map(size_argument, options.size))
    shown: Callable | Lambda | letir.Gradient
    if ":" in name and not os.path.exists(name):
        if sizes:
            raise LetirError(
                f"{name} is a function: --size is for ONNX models\n"
                "  write the numbers into its types, as in --arg 'float64[8, 3]'"
            )
        shown, title = load_function(name), name.rpartition(":")[2]
        args = traced_arguments(shown, options.arg)
    else:
        shown = check(letir.onnx.load(name, sizes=sizes)) if sizes else load_content(name, options)
        args = list(map(parse_traced_argument, options.arg))
    path = options.output or f"{title}.html"
    page = letir.viz.explorer(shown, *args, gradient=not options.no_gradient, title=title)
    page.save(path)
    print(f"{path}: {page}")
    return 0


def check_command(options: argparse.Namespace) -> int:
    """Check that a file holds a well-formed program."""
    program = load_program(options.file, options)  # which checks it, for all commands
    print(f"{options.file}: well-formed, {describe_program(program)}")
    return 0


def run_command(options: argparse.Namespace) -> int:
    """Replay a program on arrays."""
    program = load_program(options.file, options)
    paths = output_paths(options.out, len(program.ret.args))  # wrong options fail before a long run
    results = run_flat(program, list(map(parse_argument, options.arg)))
    for path, result in zip(paths, results, strict=False):
        np.save(path, result, allow_pickle=False)
    if not paths:
        print(*results, sep="\n")
    return 0


def grad_command(options: argparse.Namespace) -> int:
    """Differentiate a program, and print its gradient program, or save it."""
    argnums = options.argnums[0] if len(options.argnums) == 1 else tuple(options.argnums)
    program = load_program(options.file, options)
    if is_onnx(options.file) and [arg.type.shape for arg in program.ret.args] != [()]:
        program = letir.onnx.weighted_sum(program)
    slope = (value_and_grad if options.value else grad)(program, argnums)
    write_program(slope, options.output, gradient_names(program, slope, options))
    print_result(slope, options.output)
    return 0


def gradient_names(program: Lambda, slope: Lambda, options: argparse.Namespace) -> list[str] | None:
    """``ct_<parameter>`` for each result of a gradient, after ``value``; None if it is nested."""
    if program.in_tree is not None:
        return None
    params = [program.params[i].name for i in options.argnums]
    names = ["value"] * options.value + [f"ct_{name}" for name in params]
    return names if len(names) == len(slope.ret.args) and None not in params else None


def optimize_command(options: argparse.Namespace) -> int:
    """Run the optimising passes, and say what each of them changed, if the result is saved."""
    program, steps = load_program(options.file, options), []

    def note(*step) -> None:
        steps.append(PassReport.from_programs(*step))

    if options.passes:
        optimized = run_pipeline(tuple(map(find_pass, options.passes)), program, observe=note)
    else:
        optimized = optimize_program(program, exact=options.exact, observe=note)
    write_program(optimized, options.output)  # which may fail, before anything is printed
    for step in steps:
        if step.change and options.output is not None:
            print(f"{step.name:22} {step.before} -> {step.after}  {step.change}")
    print_result(optimized, options.output)
    return 0


def diff_command(options: argparse.Namespace) -> int:
    """Show two programs side by side, aligned."""
    print(diff(load_program(options.first, options), load_program(options.second, options)))
    return 0


# ---- files, passes and arguments ----


def find_pass(name: str) -> Callable:
    """The pass of this name."""
    if name not in passes.__all__ or name in NO_PASSES:
        names = ", ".join(sorted(set(passes.__all__) - NO_PASSES))
        raise LetirError(f"there is no pass {name!r}\n  there are {names}")
    return getattr(passes, name)


def load_content(path: str, limits: argparse.Namespace) -> Lambda | letir.Gradient:
    """The program or Gradient in a file, or the program of an ONNX model, checked."""
    if is_onnx(path):
        return check(letir.onnx.load(path))
    if path.endswith(".py"):
        raise LetirError(
            f"{path} is Python: a saved program or an ONNX model is expected\n"
            f"  letir trace {path}:FUNCTION -o FILE saves one; letir view takes a function too"
        )
    return load(path, max_bytes=limits.max_bytes, max_text_bytes=limits.max_text_bytes)


def load_program(path: str, limits: argparse.Namespace) -> Lambda:
    """The program in a file, or of an ONNX model. Raises LetirError for a Gradient, which is two
    programs.
    """
    program = load_content(path, limits)
    if not isinstance(program, Lambda):
        raise LetirError(
            f"{path} holds a {type(program).__name__}: only `letir show` takes one\n"
            "  save the program itself: letir.save(gradient.df, path)"
        )
    return program


def write_program(program: Lambda, path: str | None, output_names: list[str] | None = None) -> None:
    """Save a program, or an ONNX model of it if the path says so; nothing without a path."""
    if path is None:
        return
    if is_onnx(path):
        letir.onnx.export(program, path, output_names=output_names)
    else:
        save(program, path)


def print_result(program: Lambda, path: str | None) -> None:
    """Print a program; for one that was saved at ``path``, only how many parts it has."""
    if path is None:
        print_program(str(program))
    else:
        print(f"{path}: {describe_program(program)}")


def is_onnx(path: str) -> bool:
    """Whether a file is an ONNX model, by its name."""
    return path.lower().endswith(".onnx")


def describe_program(program: Lambda) -> str:
    """The numbers of parameters, binds and results of a program, as text."""
    parts = (program.params, "parameter"), (program, "bind"), (program.ret.args, "result")
    return ", ".join(counted_text(*part) for part in parts)


def counted_text(things: Sized, word: str) -> str:
    """The number of things, as in 3 binds."""
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"


def output_paths(paths: list[str], count: int) -> list[str]:
    """A path for each result: as given, or numbered if one path is given for several results."""
    if len(paths) in (0, count):
        return paths
    if len(paths) > 1:
        raise LetirError(
            f"the program has {count} results: give --out once or {count} times, "
            f"not {len(paths)} times\n  without --out the results are printed"
        )
    stem, dot, suffix = paths[0].rpartition(".")
    return [f"{stem}.{i}.{suffix}" if dot else f"{suffix}.{i}" for i in range(count)]
