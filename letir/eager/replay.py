"""Calls of programs on Variables [semantics.md B7]: each bind is computed and recorded."""

from typing import Any

from letir.ast.builder import Value
from letir.ast.primitive import results_tuple
from letir.ast.terms import Bind, Lambda
from letir.eager.grad_mode import is_grad_enabled
from letir.eager.recorder import RECORDER
from letir.eval.arguments import checked_arguments
from letir.eval.array_modules import array_module, type_of
from letir.eval.evaluator import Environment, Evaluator, compute
from letir.eval.memory_checks import check_writable
from letir.ops.effects.writes_to_arguments import changed_params


def replay_program(f: Lambda, leaves: list) -> tuple:
    """The results of ``f`` on Variables, arrays and numbers: Variables whose history is ``f``."""
    checked_arguments(f, leaves, lambda x: x.type if isinstance(x, Value) else type_of(x))
    if changed := changed_params(f):
        check_writable(f, [x.array if isinstance(x, Value) else x for x in leaves], changed)
        return _bind_by_bind(f, leaves)  # writes must reach the Variables among the arguments
    if is_grad_enabled() and any(isinstance(x, Value) and x.requires_grad for x in leaves):
        return _bind_by_bind(f, leaves)
    arrays = [x.array if isinstance(x, Value) else x for x in leaves]
    leaves.clear()
    return tuple(map(result_as_variable, Evaluator(array_module(arrays)).call(f, arrays)))


def result_as_variable(result: Any) -> Any:
    """A result as a Variable; a Python number or ``Undef`` unchanged."""
    return RECORDER.variable(result) if hasattr(result, "dtype") else result


def _bind_by_bind(f: Lambda, leaves: list) -> tuple:
    """The results, with every bind recorded as if the user had written it."""
    env = Environment(f, leaves)
    leaves.clear()  # only the environment holds the leaves, and frees each at its last use
    for bind in f.binds:
        operands = env.operands(bind.args)
        out = run_bind(bind, operands)
        env.bind(bind.binders, results_tuple(bind.op, out))
        del operands, out  # else the arrays would stay alive during the next bind
    return tuple(env.operands(f.ret.args))


def run_bind(bind: Bind, operands: list) -> Any:
    """The results of one bind, recorded if an operand is a Variable; ``operands`` is emptied."""
    if bind.op.role == "write_back" and isinstance(operands[0], Value):
        x, new = operands
        operands.clear()
        return x.replace(new if isinstance(new, Value) else result_as_variable(new))
    if any(isinstance(operand, Value) for operand in operands):
        out = RECORDER.apply(bind.op, operands, bind.attrs)
        _relocate_node(out, bind)
    else:
        out = compute(bind.op, operands, bind.attrs)
    operands.clear()
    return out


def _relocate_node(out, bind) -> None:
    """Give the recorded node the source line of ``bind``."""
    first = out[0] if type(out) is tuple and out else out
    node = getattr(getattr(first, "grad_fn", None), "spec", None) and first.grad_fn
    if node and bind.source is not None:
        node.source = bind.source
