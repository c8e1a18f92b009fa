"""``Script``: the overloads of one name, callable on arrays and traced values.

A call binds its arguments, selects the overload that fits their kinds [semantics.md G2], and
records one ``scripted`` bind, or the inlined body for a function without a backward.
"""

import inspect
from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast import entry_point
from letir.ast.attrs import Attrs, token
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import LetBuilder, Value
from letir.ast.terms import Lambda
from letir.ast.types import PYTHON_NUMBERS, ShapeDtype
from letir.errors import DTypeError, LetirError
from letir.eval.array_modules import is_array, type_of
from letir.eval.evaluator import run_flat
from letir.ops.autodiff.scripted import scripted
from letir.scripting.frontend.source_text import ScriptText, function_definition, script_text_of
from letir.scripting.frontend.statements import FunctionReader
from letir.scripting.lowering.lambda_lifting import (
    MISSING,
    ClosedPrograms,
    Rule,
    Spec,
    close_function,
    operands_of,
    rule_of_function,
)
from letir.scripting.script_printer import lifted_text, source_of_function
from letir.scripting.script_terms import (
    GROUP,
    SCALAR,
    STATIC,
    TENSOR,
    Group,
    Literal,
    Param,
    ScriptFunction,
    Term,
)

_NO, _CONVERTED, _EXACT = range(3)  # how well an argument fits a parameter
_STATIC_KINDS = {"bool": (bool,), "int": (int,), "str": (str,), "dtype": (np.dtype,)}
_MAX_RULES = 1 << 10


@frozen(eq=False)
class _Bound:
    """An overload with a value for each of its parameters."""

    function: ScriptFunction
    values: tuple
    fit: tuple[int, ...]  # how well each argument fits


class Script:
    """The overloads of one name: ``script(x, y)`` calls the one whose parameters fit.

    ``code`` and ``lifted`` are the source code before and after lambda lifting; ``forward`` and
    ``backward`` are the two closed programs without types, and ``at(*args)`` gives them typed for
    these arguments.

    >>> from letir.scripting.units import script
    >>> square = script('''
    ... def square(x):
    ...     def backward(g):
    ...         return 2 * g * x
    ...     return x * x, backward
    ... ''')
    >>> print(square.lifted, end="")
    def square(x: Tensor) -> Tuple[Tensor, Tuple[Tensor]]:
      return (mul(x, x), (x,))
    def backward(context: Tuple[Tensor], g: Tensor) -> Tensor:
      x, = context
      return mul(mul(2, g), x)
    >>> square.backward((3.0,), 1.0)
    np.float64(6.0)
    """

    def __init__(
        self, name: str, overloads: Sequence[ScriptFunction], scripts: MutableMapping[str, "Script"]
    ):
        self.__name__, self.overloads, self.scripts = name, list(overloads), scripts
        self._rules = BoundedCache(_MAX_RULES)

    @property
    def __signature__(self) -> inspect.Signature:
        """The parameters of the function, or of the first overload."""
        params, kind = [], inspect.Parameter.POSITIONAL_OR_KEYWORD
        for param in self.overloads[0].params:
            default = {} if param.default is None else {"default": constant_of(param.default)}
            params.append(inspect.Parameter(param.name, kind, **default))
        return inspect.Signature(params)

    @entry_point
    def overload(self, source: str | Callable) -> "Script":
        """Add an overload for other kinds of arguments: a string, or the decorated function.

        Raises ParseError if there is one for these kinds already.
        """
        text = script_text_of(source)
        function, visible = read_function(text)
        check_distinct(text, function, self.overloads)
        self.scripts = ChainMap(visible, self.scripts)  # scripts visible to the new overload
        self.overloads.append(function)
        return self

    # ---- text ----

    @property
    def code(self) -> str:
        """The functions in Python syntax; reading the text again gives the same programs."""
        return "\n".join(map(source_of_function, self.overloads))

    @property
    def lifted(self) -> str:
        """The functions after lambda lifting: a script of plain functions."""
        return "\n".join(lifted_text(function, self.scripts) for function in self.overloads)

    def __str__(self):
        return self.code

    def __repr__(self):
        listed = ", ".join(function.signature for function in self.overloads)
        return f"<script {listed}>"

    # ---- programs ----

    @property
    @entry_point
    def forward(self) -> Lambda:
        """``forward(*args) -> (*results, context)``, without types."""
        return self._untyped().forward

    @property
    @entry_point
    def backward(self) -> Lambda:
        """``backward(context, *gradients) -> gradients of the arguments``, without types."""
        result = self._untyped().backward
        if result is None:
            raise LetirError(
                f"{self.__name__} defines no backward: the script itself is differentiated\n"
                "  write an inner def backward(grad) and return it last"
            )
        return result

    def _untyped(self) -> ClosedPrograms:
        if len(self.overloads) > 1:
            raise self._arguments_needed_error("which overload the arguments choose")
        (function,) = self.overloads
        result = self._rules.get(function)  # the function alone is the key without types
        if result is None:
            spec = Spec(tuple(map(self._untyped_kind, function.params)))
            result = self._rules[function] = close_function(function, spec, self.scripts)
        return result

    def _arguments_needed_error(self, needed: str) -> LetirError:
        """The error for a program without types that would depend on the arguments."""
        return LetirError(
            f"{self.__name__}: the program depends on {needed}\n"
            "  call .at(*args) for the program of these arguments"
        )

    def _untyped_kind(self, param: Param):
        if param.kind == STATIC and param.default is None:
            raise self._arguments_needed_error(f"the value of {param.name!r}")
        if param.kind == GROUP:
            if param.parts is None:
                raise self._arguments_needed_error(f"the number of parts of {param.name!r}")
            return (None,) * len(param.parts)
        return constant_of(param.default) if param.kind == STATIC else None

    @entry_point
    def at(self, *args: Any, **kwargs: Any) -> ClosedPrograms:
        """The two programs for arguments like these: arrays, numbers, ``ShapeDtype``."""
        bound = self.pick(args, kwargs)
        return close_function(bound.function, _spec_of(bound), self.scripts)

    # ---- calls ----

    @entry_point
    def __call__(self, *args, **kwargs):
        bound = self.pick(args, kwargs)
        rule, operands = self.rule(bound), operands_of(bound.values, bound.function)
        emitter = next((a.emitter for a in operands if isinstance(a, Value)), None)  # None: arrays
        # a call on arrays keeps no residuals
        if rule.backward is None or emitter is None:
            result = run_flat(rule.forward, operands)
        else:
            result = emitter.apply(scripted, operands, self.attrs(rule))
        return rule.results.unflatten(result[: rule.n_outs])

    def emit(self, builder: LetBuilder, args: Sequence, kwargs: Mapping) -> Any:
        """The results of a call on values of ``builder``, for calls from other scripts."""
        bound = self.pick(args, kwargs)
        rule, operands = self.rule(bound), operands_of(bound.values, bound.function)
        if rule.backward is None:
            result = builder.call(rule.forward, operands)
        else:
            result = builder.apply(scripted, operands, self.attrs(rule))
        return rule.results.unflatten(result[: rule.n_outs])

    def attrs(self, rule: Rule) -> Attrs:
        """The attributes of a ``scripted`` bind."""
        programs = {"forward": rule.forward, "backward": rule.backward}
        others = {"context": rule.context, "gradients": rule.gradients, "n_outs": rule.n_outs}
        return scripted.complete({"script": self.__name__, **programs, **others})

    def rule(self, bound: _Bound) -> Rule:
        """The rule for these arguments, cached by their types."""
        spec = _spec_of(bound)
        key = (bound.function, token(spec.kinds))  # token: 1, 1.0 and True are other programs
        result = self._rules.get(key)
        if result is None:
            result = self._rules[key] = rule_of_function(bound.function, spec, self.scripts)
        return result

    def pick(self, args: Sequence, kwargs: Mapping) -> _Bound:
        """The overload that fits these arguments best, the first one of several.

        Raises DTypeError that lists the overloads if none fits.
        """
        attempts = [self.bound(function, args, kwargs) for function in self.overloads]
        result = [bound for bound in attempts if type(bound) is _Bound]
        if not result:
            raise self.misfit(args, kwargs, [reason for reason in attempts if type(reason) is str])
        # the worst fit counts; max takes the first
        return max(result, key=lambda bound: min(bound.fit, default=_EXACT))

    def misfit(self, args: Sequence, kwargs: Mapping, reasons: list[str]) -> DTypeError:
        """The error for arguments that no overload accepts."""
        keywords = [f"{name}={_describe_argument(value)}" for name, value in kwargs.items()]
        arguments = ", ".join([*map(_describe_argument, args), *keywords])
        listed = "\n".join(
            f"  {function.signature}: {reason}"
            for function, reason in zip(self.overloads, reasons, strict=True)
        )
        return DTypeError(f"{self.__name__}: no overload takes ({arguments})\n{listed}")

    def bound(self, function: ScriptFunction, args: Sequence, kwargs: Mapping) -> _Bound | str:
        """The arguments by parameter, or the reason why they do not fit."""
        params = function.params
        if len(args) > len(params):
            return f"it takes {len(params)} arguments, found {len(args)}"
        by_name = dict(zip([param.name for param in params], args, strict=False))
        for name, value in kwargs.items():
            if name in by_name or name not in {param.name for param in params}:
                return f"{name!r} is {'given twice' if name in by_name else 'not a parameter'}"
            by_name[name] = value
        values, fits = [], []
        for param in params:
            if param.name not in by_name and param.default is None:
                return f"{param.name!r} is missing"
            is_given = param.name in by_name
            value = by_name[param.name] if is_given else constant_of(param.default)
            # static values are part of a key, so they must be hashable
            values.append(_frozen_value(value) if param.kind == STATIC else value)
            fits.append(_EXACT if not is_given else _degree_of_fit(values[-1], param))
            if fits[-1] == _NO:
                return (
                    f"{param.name} must be {_kind_text(param)}, found {_describe_argument(value)}"
                )
        return _Bound(function, tuple(values), tuple(fits))


# ---- functions ----


def read_function(text: ScriptText) -> tuple[ScriptFunction, dict[str, Script]]:
    """(the only function of a text, the scripts that it may call)."""
    visible = {name: value for name, value in text.names.items() if isinstance(value, Script)}
    node = function_definition(text)
    visible.pop(node.name, None)  # an earlier definition of the function itself
    return FunctionReader(text, visible, node.name).function(node), visible


def check_distinct(
    text: ScriptText, function: ScriptFunction, others: list[ScriptFunction]
) -> None:
    """Raise ParseError if another overload has the same kinds of parameters."""
    kinds = [param.annotation or param.kind for param in function.params]
    for other in others:
        if kinds == [param.annotation or param.kind for param in other.params]:
            raise text.error(
                function.at,
                f"{function.signature} is already defined, at line {other.at.line}\n"
                "  overloads differ in the kinds of their parameters: x: Tensor, x: float",
            )


# ---- kinds of arguments ----


def _degree_of_fit(value, param: Param) -> int:
    """The degree to which an argument fits a parameter."""
    if param.kind == GROUP:
        fits = isinstance(value, tuple) and len(value if param.parts is None else param.parts) == (
            len(value)
        )
        return _CONVERTED if fits else _NO
    if param.kind == STATIC:
        return _fit_static(value, param)
    if value is None:
        optional = param.annotation is not None and "Optional" in param.annotation
        return _EXACT if optional else _NO
    if _is_scalar(value):
        # a number fits a number better than an array [semantics.md G2]
        return _EXACT if param.kind == SCALAR else _CONVERTED
    if isinstance(value, Value | ShapeDtype) or is_array(value):
        if param.kind == SCALAR:
            return _CONVERTED if isinstance(value, Value) and value.type is None else _NO
        return _EXACT
    return _NO


def _is_scalar(value) -> bool:
    """Whether an argument is a Python number, or has the type of one."""
    if isinstance(value, Value | ShapeDtype):
        return value.type is not None and value.type.weak
    return type(value) in PYTHON_NUMBERS


def _fit_static(value, param: Param) -> int:
    """The degree to which an argument fits a static parameter."""
    if not _is_static(value):
        return _NO
    classes = _STATIC_KINDS.get(param.annotation or "")
    return _EXACT if classes is None or type(value) in classes else _NO


def _is_static(value) -> bool:
    """Whether a value can be part of a program."""
    if isinstance(value, tuple):
        return all(map(_is_static, value))
    return (
        value is None
        or type(value) in (bool, int, float, complex, str)
        or isinstance(value, np.dtype)
    )


def _frozen_value(value):
    """A static argument in normal form: lists as tuples, classes of dtypes as dtypes."""
    if isinstance(value, list | tuple):
        return tuple(map(_frozen_value, value))
    if isinstance(value, type) and issubclass(value, np.generic | float | int | complex):
        return np.dtype(value)
    return int(value) if isinstance(value, np.integer) else value


def _kind_text(param: Param) -> str:
    """A description of the arguments that a parameter accepts, for messages."""
    count = "arrays" if param.parts is None else f"{len(param.parts)} arrays"
    words = {TENSOR: "an array", SCALAR: "a number", GROUP: f"a tuple of {count}"}
    return words.get(param.kind, f"a constant {param.annotation or 'value'}")


def _describe_argument(value) -> str:
    """A description of an argument, for messages."""
    if isinstance(value, Value | ShapeDtype):
        return str(value.type)
    if is_array(value):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_describe_argument, value))}{',' * (len(value) == 1)})"
    return f"{type(value).__name__} {value!r}" if _is_static(value) else type(value).__name__


def constant_of(term: Term) -> Any:
    """The value of a default."""
    if type(term) is Group:
        return tuple(map(constant_of, term.items))
    assert type(term) is Literal
    return term.value


def _spec_of(bound: _Bound) -> Spec:
    """The properties of arguments to which a program is specialised."""
    return Spec(
        tuple(
            value if param.kind == STATIC else _kind_of(value)
            for value, param in zip(bound.values, bound.function.params, strict=True)
        )
    )


def _kind_of(value):
    """The type of an operand, or of each operand in a tuple."""
    if isinstance(value, tuple):
        return tuple(map(_kind_of, value))
    if value is None:
        return MISSING
    return value.type if isinstance(value, Value | ShapeDtype) else type_of(value)
