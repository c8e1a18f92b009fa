"""Reads of code that no test of globals, captured variables and attributes of modules notices."""

import itertools
from opcode import opmap
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType

import numpy as np

from letir.executor.argument_spec import nested_codes
from letir.executor.frequent_calls.external_values import EFFECTS

# names of functions that read files or settings of NumPy
_OF_FILES = frozenset(["DataSource", "fromregex", "genfromtxt", "open_memmap"])
_OF_SETTINGS = frozenset(["errstate", "getbufsize", "geterr", "geterrcall", "get_printoptions"])
# functions that read attributes by names that the code need not contain
_BY_NAME = frozenset(
    ["__getattribute__", "attrgetter", "dir", "getattr", "hasattr", "methodcaller"]
)
# the clock (datetime64("now")), the address of an object, the memory of an array
_OTHERS = frozenset(
    ["__array_interface__", "base", "ctypes", "data", "datetime64", "flags", "id", "setflags"]
)
_OF_FUNCTIONS = frozenset(
    name
    for name, member in vars(FunctionType).items()
    if type(member) in (GetSetDescriptorType, MemberDescriptorType)
)
# names that a function which is not recorded again must not contain
UNSEEN = EFFECTS | _OF_FILES | _OF_SETTINGS | _BY_NAME | _OTHERS | _OF_FUNCTIONS

_FORMATTERS = frozenset(["array2string", "array_repr", "array_str", "ascii", "format", "repr"])
_FORMATTERS |= {"__format__", "__repr__", "__str__", "str"}
_OF_TEXT = frozenset(  # instructions of f-strings
    opmap[name] for name in ("FORMAT_SIMPLE", "FORMAT_VALUE", "FORMAT_WITH_SPEC") if name in opmap
)


def may_format_arrays(code: CodeType) -> bool:
    """Whether code may make a text of an array, which depends on NumPy's options for printing."""
    return any(
        not _FORMATTERS.isdisjoint(inner.co_names)
        or not _OF_TEXT.isdisjoint(inner.co_code[::2])
        or any(type(constant) is str and "%" in constant for constant in inner.co_consts)
        for inner in nested_codes(code)
    )


def has_print_options(options: dict) -> bool:
    """Whether these are NumPy's present options for printing."""
    return np.get_printoptions() == options


def are_apart(*pairs: tuple) -> bool:
    """Whether the two arrays of no pair share memory."""
    return not any(np.may_share_memory(a, b) for a, b in pairs)


def all_apart(*arrays: np.ndarray) -> bool:
    """Whether no two of the arrays share memory."""
    return are_apart(*itertools.combinations(arrays, 2))
