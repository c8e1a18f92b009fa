"""``support_of``: which features of letir work for a public NumPy function, tried on its call.

Read ``call.py`` first. ``docs/make_numpy.py`` writes the results as a page, a test checks them.
"""

import warnings
from collections.abc import Callable, Iterator

import numpy as np
from attrs import frozen

import letir.numpy
from letir.ad.differentiation import differentiate
from letir.ast.pytrees import flatten
from letir.ast.terms import Lambda
from letir.errors import LetirError
from letir.eval.array_modules import type_of
from letir.eval.evaluator import run_forward
from letir.testing.assertions import assert_close, assert_same
from letir.testing.calls import CALLS
from letir.testing.calls.call import NumpyCall
from letir.testing.calls.listed import NO_ARRAYS
from letir.testing.gradient_checks import check_grads, is_inexact
from letir.tracing.entry import trace
from letir.transforms.vmapping import vmap

_NAMESPACES = {"": np, "linalg.": np.linalg, "fft.": np.fft}
YES, NONE = "yes", "—"


@frozen
class Support:
    """The support of one function: each field is "yes", "—" (not applicable), or an error."""

    plain: str
    namespace: str
    vjp: str
    jvp: str
    batch: str
    complexes: str

    @property
    def is_recorded(self) -> bool:
        """Whether NumPy's function, or the function of ``letir.numpy``, is recorded."""
        return YES in (self.plain, self.namespace)


def public_functions() -> Iterator[str]:
    """The names of NumPy's public functions of arrays, such as ``sum`` and ``linalg.inv``."""
    others = {name for names in NO_ARRAYS.values() for name in names.split()}
    for prefix, module in _NAMESPACES.items():
        for name in sorted(module.__all__):
            value = getattr(module, name, None)
            if callable(value) and not isinstance(value, type) and name not in others:
                yield prefix + name


def support_of(name: str) -> Support:
    """The support of a function, tried on its call in ``CALLS``."""
    call = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of NumPy, which the laws of operations check
        plain, namespace = (
            _try_check(_is_replayed, call, np, call.args) for np in (np, letir.numpy)
        )
        support = namespace if plain != YES else plain
        if support != YES:
            return Support(plain, namespace, *[NONE] * 4)
        return Support(
            plain,
            namespace,
            _try_check(_has_derivative, call, "rev"),
            _try_check(_has_derivative, call, "fwd"),
            _try_check(_is_batched, call),
            _try_check(_takes_complex, call),
        )


def _try_check(check: Callable, *args) -> str:
    """The result of ``check``, or the error that it raises."""
    try:
        return YES if check(*args) else NONE
    except (LetirError, AssertionError) as error:
        return str(error).partition("\n")[0]


def _bound_call(call: NumpyCall, namespace=letir.numpy) -> Callable:
    """The call as a function of its traced arguments."""
    return lambda *args: call.f(namespace, *args)


def _is_replayed(call: NumpyCall, namespace, args: tuple) -> bool:
    """Whether the call is recorded, and its replay gives NumPy's result to the last bit."""
    fn = trace(_bound_call(call, namespace), *args)
    assert_same(call.f(np, *args), run_forward(fn, *args))
    return True


def _has_derivative(call: NumpyCall, mode: str) -> bool:
    """Whether the function has a derivative that agrees with differences."""
    if not _is_differentiable(trace(_bound_call(call), *call.args), call.args):
        return False
    _check_derivative(call, call.args, (mode,))
    return True


def _check_derivative(call: NumpyCall, args: tuple, modes: tuple[str, ...]) -> None:
    """Raise AssertionError unless the derivative agrees with differences, where these apply."""
    if call.jumps:
        return  # is_differentiable has already computed the derivative
    check_grads(_bound_call(call), args, order=1, modes=modes)


def _is_differentiable(fn: Lambda, args: tuple) -> bool:
    """Whether a result depends on a floating argument through derivatives."""
    leaves = flatten(args)[0]
    needs = [is_inexact(leaf) for leaf in leaves]
    if not any(needs):
        return False
    gradient = differentiate(fn, needs)
    return any(i < gradient.f_real_outputs for i in gradient.df_input_vjps)  # no temporaries


def _is_batched(call: NumpyCall) -> bool:
    """Whether ``vmap`` gives the same results as a loop over two examples."""
    if not call.args:
        return False
    examples = [call.args, call.args]
    stacked = [np.stack(both) for both in zip(*examples, strict=True)]
    expected = [flatten(call.f(np, *args))[0] for args in examples]
    batched = flatten(vmap(_bound_call(call))(*stacked))[0]
    for i, example in enumerate(expected):
        for rows, single in zip(batched, example, strict=True):
            assert_close(np.asarray(single), np.asarray(rows)[i])
    return True


def _takes_complex(call: NumpyCall) -> bool:
    """Whether complex arguments that NumPy accepts are recorded and differentiated."""
    args = _complex_arguments(call)
    if not args:
        return False
    _is_replayed(call, letir.numpy, args)
    if _is_differentiable(trace(_bound_call(call), *args), args):
        _check_derivative(call, args, ("rev", "fwd"))
    return True


def _complex_arguments(call: NumpyCall) -> tuple:
    """Complex arguments that NumPy takes; () if it takes none."""
    if call.complexes is not None:
        return call.complexes
    args = tuple(arg * (1 + 0.25j) if type_of(arg).inexact else arg for arg in call.args)
    try:
        call.f(np, *args)
    except (TypeError, ValueError):
        return ()
    return args
