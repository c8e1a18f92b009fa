"""The costs of NumPy calls and kernels on a computer, which decide which groups become kernels.

The numbers are a table for the processor's family, or were measured on this computer by
``letir tune``. They are never measured while a program runs, so that two runs of a script compute
the same bits.
"""

import json
import logging
import os
import platform
from functools import cache
from typing import Any

import numpy as np
from attrs import asdict, evolve, fields, frozen

from letir.ast import LATE_BOUND

_LOG = logging.getLogger("letir")
_MAX_BYTES = 1 << 20  # of a file of costs
# the names of AVX-512 in the lists of NumPy 2.4 and of earlier versions
_AVX512 = frozenset(["X86_V4", "AVX512_SKX"])


@frozen
class MachineCosts:
    """The costs by which a group of operations becomes a kernel or not, in nanoseconds.

    ``origin``: the processor's family, or the file from which the numbers were read.
    """

    origin: str
    least_elements: int = 1 << 14  # that equal groups compute in one call, to be compiled
    least_loop_calls: int = 500  # of NumPy in a loop, for the loop to be a kernel
    least_thread_work: int = 1 << 22  # of a call in threads: about half a millisecond
    compiles_functions: bool = True  # whether one elementary function of float64 is a kernel
    call: float = 400  # of NumPy on arrays
    number_call: float = 80  # of NumPy on numbers
    index: float = 130  # into an array
    element: float = 0.4  # that a call computes
    term: float = 0.3  # that a call adds up
    table_call: float = 3_000  # of a table of instructions
    table_array: float = 500  # each operand or result of a table
    table_element: float = 0.3  # each element of these
    kernel_call: float = 1_500  # of an unrolled kernel
    kernel_array: float = 150  # each operand or result of an unrolled kernel
    kernel_scalar: float = 4  # each scalar that it computes

    def __str__(self):
        values = asdict(self)
        lines = [f"costs of {values.pop('origin')}:"]
        return "\n".join([*lines, *[f"  {name:<20} {value}" for name, value in values.items()]])


@cache
def machine_costs() -> MachineCosts:
    """The costs of this computer: from the file that ``letir tune`` wrote, or of its family."""
    file = costs_file()
    if file is None or not os.path.isfile(file):
        return family_costs()
    try:
        return costs_from_values(saved_values(file)[processor_name()], f"this computer, {file}")
    except KeyError:
        _LOG.info("%s: measured on another processor; `letir tune` measures this one", file)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        _LOG.warning("%s is ignored: %s\n  `letir tune` writes a new one", file, error)
    return family_costs()


def family_costs() -> MachineCosts:
    """The costs of this processor's family.

    With AVX-512, NumPy computes elementary functions of float64 eight elements at a time; with
    narrower registers, one by one: https://numpy.org/doc/stable/release/1.22.0-notes.html.
    """
    config: Any = np.show_config(mode="dicts")
    family = config["Machine Information"]["host"]["cpu"].replace("_", "-")
    if _AVX512.isdisjoint(config["SIMD Extensions"].get("found", ())):
        return MachineCosts(family)
    return MachineCosts(f"{family} with AVX-512", compiles_functions=False)


def costs_file() -> str | None:
    """The file of costs: ``LETIR_COSTS``, by default in the user's folder of settings; None if the
    variable is empty.
    """
    setting = os.environ.get("LETIR_COSTS")
    if setting is not None:
        return setting or None
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(home, "letir", "costs.json")


def saved_values(file: str) -> dict[str, Any]:
    """The values in a file of costs, by processor. Raises OSError or ValueError."""
    with open(file, "rb") as opened:
        result = json.loads(opened.read(_MAX_BYTES))
    if type(result) is not dict:
        raise ValueError("it has no values by processor")
    return result


def costs_from_values(values: dict[str, Any], origin: str) -> MachineCosts:
    """Costs with these values. Raises ValueError for names and values that costs do not have."""
    kinds = {x.name: x.type for x in fields(MachineCosts) if x.name != "origin"}
    for name, value in values.items():
        if name not in kinds:
            raise ValueError(f"no cost is called {name!r}")
        expected = (int, float) if kinds[name] is float else (kinds[name],)
        if type(value) not in expected or not 0 <= value < 1 << 50:
            raise ValueError(f"{name}: expected {expected[-1].__name__}, got {value!r}")
    return evolve(family_costs(), origin=origin, **values)


@cache
def processor_name() -> str:
    """The name of this computer's processor, such as ``AMD EPYC 7713``."""
    try:
        with open("/proc/cpuinfo") as opened:
            for line in opened:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:  # not Linux
        pass
    return platform.processor() or platform.machine()


LATE_BOUND.update(machine_costs=machine_costs)
