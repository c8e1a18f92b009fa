"""LLVM text of a module: its functions, the end, and calls for several elements at a time."""

import numpy as np
from attrs import define

from letir.kernels.llvm.llvm_statements import StatementText, calling_convention, function_name
from letir.kernels.loop_language import Function


@define(eq=False)
class ModuleText(StatementText):
    """Writes the LLVM module of one kernel; a subclass writes the entry function."""

    def functions(self) -> None:
        """The functions that are needed, and the functions that these call."""
        written: set = set()
        while len(written) < len(self.needed):
            for key in [key for key in self.needed if key not in written]:
                written.add(key)
                self.function(*key)

    def function(self, function: Function, lanes: int = 1) -> None:
        """A function of the kernel, which LLVM does not inline, so that its code exists once.

        ``lanes``: the number of elements for which a call computes the function.
        """
        self.lanes, params = lanes, []
        for n, param in enumerate(function.params):
            self.names[param] = f"%p{n}"
            params.append(f"{self.type_of(param.dtype)} %p{n}")
        kind, name = self.type_of(function.result.dtype), function_name(function, lanes)
        head = f"define internal {calling_convention(function)}{kind} @{name}({', '.join(params)})"
        attributes = "#2" if function.is_cold else "#1"
        self.lines.append(f"{head} {attributes}{self.function_notes(function)} {{")
        self.open("entry")
        if function.condition is None:
            self.body(function.body, {}, None)
            self.emit(f"ret {kind} {self.operand(function.result)}")
        else:
            self.rare_body(function, kind)
        self.lines.append("}")
        self.lanes = 1

    def rare_body(self, function: Function, kind: str) -> None:
        """The body of a function that returns its first parameter unless a condition holds."""
        self.body(function.test, {}, None)
        is_rare = any_rare = self.operand(function.condition)
        if self.lanes > 1:
            name = f"llvm.vector.reduce.or.v{self.lanes}i1"
            flags = self.type_of(np.dtype("?"))
            self.declared[name] = f"declare i1 @{name}({flags})"
            any_rare = self.value(f"call i1 @{name}({flags} {is_rare})")
        self.emit(f"br i1 {any_rare}, label %rare, label %usual")
        self.open("usual")
        self.emit(f"ret {kind} %p0")
        self.open("rare")
        self.body(function.body, {}, None)
        result = self.operand(function.result)
        if self.lanes > 1:
            flags = self.type_of(np.dtype("?"))
            result = self.value(f"select {flags} {is_rare}, {kind} {result}, {kind} %p0")
        self.emit(f"ret {kind} {result}")

    def function_notes(self, function: Function) -> str:
        """Further attributes of a function."""
        return ""

    def tail(self) -> list[str]:
        """The end of the module: declarations, attributes and metadata."""
        attributes = [
            "attributes #0 = { nounwind }",
            "attributes #1 = { nounwind noinline willreturn memory(none) }",
            "attributes #2 = { nounwind noinline optnone willreturn memory(none) }",
            "attributes #3 = { nounwind noinline }",
            "attributes #4 = { nounwind noinline optnone }",
        ]
        notes = [f"!{n} = {text}" for n, text in enumerate(self.metadata)]
        return [*self.declared.values(), *attributes, *notes]
