"""The records ``cond`` and ``switch``: one of several closed bodies is evaluated.

All bodies of a bind take the same operands in the same order and give results of the same types.
Their derivatives (``letir.ops.control_flow.conditional_derivatives``) are binds of the bodies'
derivatives, so that only the branch that is taken is differentiated.
"""

from collections.abc import Callable, Sequence

from letir.ast.primitive import Primitive
from letir.ast.record_fields import BodyLayout
from letir.ast.terms import NO_TYPE, Bind, Lambda
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError
from letir.ops.as_numpy import loops
from letir.ops.autodiff.checkpoint_and_custom_jvp import (
    as_numbers,
    define_body_op,
    fit_body_keeping_numbers,
)
from letir.ops.control_flow.conditional_batching import choice_batch
from letir.ops.control_flow.conditional_derivatives import (
    choice_fused_jvp,
    choice_jvp,
    choice_vjp,
    choice_with_residuals,
)


def _define_choice(
    name: str, run: Callable, aval: Callable, results: Callable, *, in_place: Callable, **fields
) -> Primitive:
    """The record of a choice between bodies; ``in_place`` as in ``BodyLayout``."""
    return define_body_op(
        name,
        run,
        aval,
        bodies=BodyLayout(ahead=1, in_place=in_place),
        vjp=choice_vjp(name),
        jvp=choice_jvp(name),
        fused_jvp=choice_fused_jvp(name),
        batch=choice_batch(name),
        with_residuals=choice_with_residuals,
        results=results,
        **fields,
    )


# ---- types ----


def _joined_types(name: str, bodies: Sequence[Lambda], labels: Sequence[str], types) -> tuple:
    """The types of the results, on which all bodies must agree.

    Raises ShapeError or DTypeError for a result in which the bodies differ.
    """
    returned = [
        [arg.type for arg in fit_body_keeping_numbers(body, types).ret.args] for body in bodies
    ]
    counts = list(map(len, returned))
    if len(set(counts)) > 1:
        raise ShapeError(
            f"{name}: its branches have {', '.join(map(str, counts))} results\n"
            "  return as many arrays from each branch"
        )
    return tuple(
        [
            _joined_type(name, i, kinds, labels)
            for i, kinds in enumerate(zip(*returned, strict=True))
        ]
    )


def _joined_type(name: str, place: int, kinds: Sequence, labels: Sequence[str]) -> ArrayType | None:
    """The type of one result; None if it is unknown in a branch."""
    if None in kinds:
        return None
    if NO_TYPE in kinds:
        raise DTypeError(
            f"{name}: result {place} is None\n"
            "  return an array from each branch, such as np.zeros_like(x)"
        )
    for aval, label in zip(kinds, labels, strict=True):
        if (aval.dtype, aval.shape) != (kinds[0].dtype, kinds[0].shape):
            raise (ShapeError if aval.dtype == kinds[0].dtype else DTypeError)(
                f"{name}: result {place} is {kinds[0]!r} in {labels[0]}, {aval!r} in {label}\n"
                "  give both the same shape and dtype"
            )
    # a Python number in one branch and an array in another: an array
    return next((aval for aval in kinds if not aval.weak), kinds[0])


def _check_choice(name: str, aval: ArrayType | None, kinds: str) -> None:
    """Raise unless ``aval`` is the type of one number whose dtype has one of these ``kinds``."""
    if aval is None:
        raise DTypeError(
            f"{name}: the choice must be a number, found None\n"
            "  pass a condition such as x.sum() > 0"
        )
    if aval.shape:
        raise ShapeError(
            f"{name}: the choice must be one number, found {aval!r}\n"
            "  reduce it first (x.all(), x.any()), or choose element by element: numpy.where"
        )
    if aval.dtype.kind not in kinds:
        raise DTypeError(
            f"{name}: the choice must be an integer, found {aval!r}\n"
            "  pass the number of a branch, or convert it: i.astype(int)"
        )


# ---- cond ----


def _run_cond(xp, operands: list, *, call, on_true, on_false):
    """The results of the branch that the first operand selects; empties ``operands``."""
    body = on_true if operands.pop(0) else on_false
    as_numbers(body, operands)
    return call(body, operands)


def _cond_aval(pred, *types, on_true, on_false):
    """The result types of both branches."""
    _check_choice("cond", pred, "biufc")
    return _joined_types("cond", (on_true, on_false), ("on_true", "on_false"), types)


def _known_branch(bind: Bind, number: Callable) -> tuple | None:
    """The branch that a constant chooses, and its operands."""
    chosen = number(bind.args[0])
    if chosen is None:
        return None
    return bind.attrs["on_true" if bool(chosen) else "on_false"], bind.args[1:]


cond = _define_choice(
    "cond",
    _run_cond,
    _cond_aval,
    lambda *, on_true, on_false: len(on_true.ret.args),
    in_place=_known_branch,
    source=loops.cond,
)

# ---- switch ----


def _run_switch(xp, operands: list, *, call, branches):
    """The results of the branch whose number is the first operand; empties ``operands``.

    A number below 0 selects the first branch, a number beyond the last branch the last one.
    """
    index = int(operands.pop(0))
    body = branches[min(max(index, 0), len(branches) - 1)]
    as_numbers(body, operands)
    return call(body, operands)


def _switch_aval(index, *types, branches):
    """The result types of all branches."""
    _check_choice("switch", index, "biu")
    labels = [f"branch {i}" for i in range(len(branches))]
    return _joined_types("switch", branches, labels, types)


def _known_case(bind: Bind, number: Callable) -> tuple | None:
    """The branch that a constant chooses, or the only one, and its operands."""
    branches, chosen = bind.attrs["branches"], number(bind.args[0])
    if len(branches) == 1:
        chosen = 0
    if chosen is None:
        return None
    return branches[min(max(int(chosen), 0), len(branches) - 1)], bind.args[1:]


switch = _define_choice(
    "switch",
    _run_switch,
    _switch_aval,
    lambda *, branches: len(branches[0].ret.args),
    in_place=_known_case,
    source=loops.switch,
)
