"""``to_source``: a Lambda as a NumPy function, a Gradient as two."""

from collections.abc import Sequence

from letir.ad.gradient_program import Gradient
from letir.ad.symbolic_zeros import specialize_undef
from letir.ast import entry_point
from letir.ast.process_state import paused_gc
from letir.ast.pytrees import Tree
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Arg, Lambda, Local
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ExportError
from letir.passes.dead_code_elimination import dead_code
from letir.source.argument_changes import can_store, write_stores
from letir.source.module import Module
from letir.source.names import RESERVED, nearest_identifier
from letir.source.numpy_literals import dtype_text, literal_text, printable_line, wrapped_items
from letir.source.signature import (
    Signature,
    can_build,
    can_unpack,
    parameter_names,
    structure_expression,
    without_brackets,
)
from letir.source.writer import Writer
from letir.visitors.usedef import use_counts


@entry_point
def to_source(f: Lambda | Gradient, name: str = "f") -> str:
    """The source of a stand-alone NumPy function that computes the same as ``f``.

    The function takes the same nested arguments and returns the same results to the bit; it uses
    the user's names, and comments show the user's lines. A Gradient becomes two functions:
    ``name_forward(*args)`` returns (results, residuals), and ``name_backward(residuals, *cts)``
    returns a tuple of cotangents; None stands for a zero cotangent.

    Arguments are not checked, and values live until the function ends. User-defined operations need
    a ``source`` in their record; opaque functions are imported from their modules. Raises
    ExportError with the user's line if an operation cannot be written. Linear in the number of
    binds.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0:x: float64[3], %1:rate: float64*[] { %2:y = mul(%0, %1); return %2 }")
    >>> print(to_source(f, "scaled"), end="")
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def scaled(x, rate):
        rate = float(rate)
        y = x * rate
        return y
    """
    if nearest_identifier(name) != name or name in RESERVED:
        raise ExportError(
            f"to_source: {name!r} cannot name a function: take another word\n  pass name='f'"
        )
    with paused_gc():
        if isinstance(f, Lambda):
            return _lambda_source(f, name)
        if isinstance(f, Gradient):
            return _gradient_source(f, name)
    has_program = hasattr(f, "program")  # a result of vjp or linearize
    remedy = (
        "take its .program"
        if has_program
        else "record it first: letir.to_source(letir.trace(f, *args))"
    )
    raise DTypeError(
        f"to_source takes a Lambda or a Gradient, found {type(f).__name__}\n  {remedy}"
    )


def _lambda_source(fn: Lambda, name: str) -> str:
    """The source of a Lambda."""
    module = Module()
    module.names.take(name)
    writer = Writer(module)
    head = _write_parameters(writer, fn)
    # for the parameters of df, None means Undef
    writer.nullable.update([writer.texts[param] for param in fn.params])
    writer.write(fn)
    results = [writer.arg(arg) for arg in fn.ret.args]
    if fn.out_tree is not None and fn.out_tree.stores and can_store(fn):
        _write_return(writer, write_stores(writer, fn, results, head))
    else:
        _write_return(writer, _nested_results(writer, results, fn.out_tree))
    _add_function(writer, name, head)
    return module.text()


def _add_function(writer: Writer, name: str, head: list[str]) -> None:
    """Add the function written by ``writer`` to its module."""
    writer.module.functions.append(
        f"def {name}({wrapped_items(head, '    ')}):\n{''.join(writer.lines)}"
    )


def _write_parameters(writer: Writer, fn: Lambda) -> list[str]:
    """The parameters of a function; the statements that unpack them are written."""
    signature = Signature(writer, parameter_names(fn))
    tree = fn.in_tree
    if tree is not None and not can_unpack(tree.spec):
        writer.line(f"# the arguments are the leaves of {printable_line(str(tree))}")
        tree = None
    if tree is None:
        signature.head += [writer.parameter(p, signature.names[p]) for p in fn.params]
    else:
        statics, rest = dict(tree.statics), iter(fn.params)
        leaves = (statics[i] if i in statics else next(rest) for i in range(tree.spec.num_leaves))
        args, kwargs = tree.spec.children()
        words = [writer.names.exact(word) for word in kwargs.entries()]
        for spec in args.children():
            signature.argument(spec, [next(leaves) for _ in range(spec.num_leaves)])
        signature.head += ["*"] if kwargs.num_children else []
        for word, spec in zip(words, kwargs.children(), strict=True):
            signature.argument(spec, [next(leaves) for _ in range(spec.num_leaves)], word)
    _widen_numbers(writer, fn)
    return signature.head


def _widen_numbers(writer: Writer, fn: Lambda) -> None:
    """Write conversions of Python numbers to the recorded types, as a call of the program does."""
    for param in fn.params:
        aval = param.type
        if aval is not None and aval.weak and aval.dtype.kind in "fc" and param in use_counts(fn):
            convert = "float" if aval.dtype.kind == "f" else "complex"
            writer.line(f"{writer.texts[param]} = {convert}({writer.texts[param]})")


def _nested_results(writer: Writer, texts: Sequence[str], tree: Tree | None) -> str:
    """The expression of results with the nesting of ``tree``."""
    if tree is None:
        return texts[0] if len(texts) == 1 else _tuple_text(texts)
    if not can_build(tree.spec):
        writer.line(f"# the results are the leaves of {printable_line(str(tree))}")
        return _nested_results(writer, texts, None)
    return structure_expression(writer, tree.spec, iter(texts))


def _write_return(writer: Writer, text: str) -> None:
    """Write ``return``."""
    writer.line(f"return {text}")


# ---- gradients ----


def _gradient_source(g: Gradient, name: str) -> str:
    """The source of the two functions of a Gradient."""
    module = Module()
    for part in ("forward", "backward"):
        module.names.take(f"{name}_{part}")  # taken first, because other names must avoid them
    forward = Writer(module)
    head = _write_parameters(forward, g.f)
    forward.nullable.update([forward.texts[p] for p in g.f.params if p.type is None])
    forward.write(g.f)
    texts = [forward.arg(arg) for arg in g.f.ret.args]
    residuals = [forward.texts[g.f.params[i]] for i in g.df_input_captured_inputs]
    residuals += [texts[i] for i in g.df_input_captured_outputs]
    results = _nested_results(forward, texts[: g.f_real_outputs], g.out_tree)
    _write_return(forward, f"{results}, {_tuple_text(residuals)}")
    _add_function(forward, f"{name}_forward", head)
    _backward_source(g, module, texts, residuals, f"{name}_backward")
    return module.text()


def _backward_source(
    g: Gradient, module: Module, results: list[str], captured: list[str], name: str
) -> None:
    """Add the backward function; residuals have the same names as in the forward function."""
    real = [i for i in g.df_input_vjps if i < g.f_real_outputs]
    count = len(g.df_input_vjps)
    # a single cotangent returns early if it is None; several may be None in any combination
    states = [True if len(real) == 1 else None] * len(real) + [False] * (count - len(real))
    rest = [True] * (len(g.df.params) - count)  # residuals are values, never None
    df = dead_code(specialize_undef(g.df, states + rest))  # no grad_of for known cotangents
    writer = Writer(module)
    residuals = writer.names.fresh("residuals")
    cts = _cotangent_parameters(writer, df, real, results)
    zeros = [_zero_text(g.f.params[i].type) for i in g.df_output_vjps]
    if len(cts) == 1:
        with writer.block(f"if {cts[0]} is None:"):
            _write_return(writer, _tuple_text(zeros))
    writer.nullable.update(cts if len(cts) > 1 else ())
    writer.texts |= dict.fromkeys(df.params[len(cts) : count], "None")  # cotangents of temporaries
    names = [writer.parameter(p, text) for p, text in zip(df.params[count:], captured, strict=True)]
    if names:
        writer.line(f"{without_brackets(_tuple_text(names))} = {residuals}")
    _name_gradients(writer, g, df)
    writer.write(df)
    cotangents = [_or_zeros(writer, *pair) for pair in zip(df.ret.args, zeros, strict=True)]
    _write_return(writer, _tuple_text(cotangents))
    _add_function(writer, name, [residuals, *cts])


def _cotangent_parameters(
    writer: Writer, df: Lambda, real: list[int], results: list[str]
) -> list[str]:
    """The cotangent parameters of the results at these positions."""
    if len(real) == 1:
        return [writer.parameter(df.params[0], "ct")]
    return [
        writer.parameter(param, f"ct_{results[i]}")
        for i, param in zip(real, df.params, strict=False)
    ]


def _name_gradients(writer: Writer, g: Gradient, df: Lambda) -> None:
    """Name the cotangent of a parameter ``x`` ``d_x``."""
    names = parameter_names(g.f)
    bound = {b for bind in df.binds for b in bind.binders}
    for i, arg in zip(g.df_output_vjps, df.ret.args, strict=True):
        # a gradient shared by two arguments is named after the first
        if type(arg) is Local and arg in bound and arg not in writer.wanted:
            writer.wanted[arg] = writer.names.fresh(f"d_{names[g.f.params[i]]}")


def _zero_text(aval: ArrayType | None) -> str:
    """Zeros of a type; None if it is unknown."""
    if not has_static_shape(aval):
        return "None"
    dtype = "" if aval.dtype == float else f", dtype={dtype_text(aval.dtype)}"
    return f"np.zeros({literal_text(aval.shape)}{dtype})"


def _or_zeros(writer: Writer, arg: Arg, zeros: str) -> str:
    """The expression of a returned cotangent, with zeros if it is undefined."""
    text = writer.arg(arg)
    if text == "None":
        return zeros
    return f"{zeros} if {text} is None else {text}" if text in writer.nullable else text


def _tuple_text(texts: Sequence[str]) -> str:
    """The expression of a tuple."""
    inside = wrapped_items(list(texts), "        ")
    end = "\n    " if "\n" in inside else ""
    return f"({inside}{',' if len(texts) == 1 else ''}{end})"
