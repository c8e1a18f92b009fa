"""``Module``: the imports, constants and functions of a generated source file."""

import re

import numpy as np

from letir.source.names import Names
from letir.source.numpy_literals import literal_text

_MAX_INLINE = 64  # elements of an array constant that is written inline
_HEAD = re.compile(r"def (\w+)\(")


class Module:
    """Collects the parts above a function: imports, large constants and further functions."""

    def __init__(self):
        self.names = Names()
        self.imports: dict[str, None] = {"import numpy as np": None}
        self.constants: list[str] = []
        self.functions: list[str] = []
        self.names_by_key: dict = {}  # the key of a function or constant -> its name

    def constant(self, array: np.ndarray, name: str | None) -> str:
        """The expression of an array constant.

        A large one is a module constant that each call copies, since results belong to the caller.
        """
        if array.size <= _MAX_INLINE:
            return literal_text(array, "    ")
        key = "constant", id(array)  # the program keeps it alive, so the id is unique
        if key not in self.names_by_key:
            fresh = self.names_by_key[key] = self.names.fresh((name or "constant").upper())
            self.constants.append(f"{fresh} = {literal_text(array)}\n")
        return f"{self.names_by_key[key]}.copy()"

    def helper(self, text: str) -> str:
        """The name of a function with this text, which is added once."""
        result = self.names_by_key.get(text)  # by its text, which several binds may share
        if result is None:
            (head_name,) = _HEAD.findall(text)[:1]
            result = self.names_by_key[text] = self.names.fresh(head_name)
            self.functions.append(
                text.replace(f"def {head_name}(", f"def {result}(", 1).strip() + "\n"
            )
        return result

    def imported(self, module: str, name: str) -> str:
        """The name of an imported object."""
        key = "import", module, name
        if key not in self.names_by_key:
            fresh = self.names_by_key[key] = self.names.fresh(name)
            alias = "" if fresh == name else f" as {fresh}"
            self.imports[f"from {module} import {name}{alias}"] = None
        return self.names_by_key[key]

    def namedtuple(self, name: str, fields: tuple[str, ...]) -> str:
        """The name of a named tuple with these fields, which is defined once."""
        key = "namedtuple", name, fields
        if key not in self.names_by_key:
            make = self.imported("collections", "namedtuple")
            fresh = self.names_by_key[key] = self.names.fresh(name)
            self.constants.append(f"{fresh} = {make}({name!r}, {' '.join(fields)!r})\n")
        return self.names_by_key[key]

    def text(self) -> str:
        """The whole source."""
        head = "\n".join(self.imports) + "\n"
        constants = ["\n".join(self.constants)] if self.constants else []
        return "\n\n".join([head, *constants, *self.functions])
