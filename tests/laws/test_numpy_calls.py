"""Calls of NumPy are recorded as one bind, and their replay agrees with NumPy."""

import numpy as np
import pytest

from letir import run_forward, trace
from letir.ast.primitive import Primitive
from letir.testing import Sample, assert_same
from tests.each_sample import each_sample


def masked_call(f, x, *mask, **attrs):
    return f(x, **attrs, **({"where": mask[0]} if mask else {}))


def list_call(f, *parts, **attrs):
    return f(parts, **attrs)


def by_name(*names):
    """A call that passes the operands after the first as keywords, if they are there."""

    def call(f, x, *others, **attrs):
        pairs = zip(names, others, strict=False)
        return f(x, **{name: arg for name, arg in pairs if arg is not None}, **attrs)

    return call


def pad_keywords(value=None, mode="constant", of=None):
    name = "reflect_type" if type(of) is str else "stat_length"
    value_name = "constant_values" if mode == "constant" else "end_values"
    given = {value_name: value, name: of}
    return {"mode": mode, **{key: found for key, found in given.items() if found is not None}}


def histogram_call(f, a, edges=None, weights=None, *, bins=None, **attrs):
    return f(a, bins if edges is None else edges, weights=weights, **attrs)


def histogramdd_call(f, sample, weights=None, *edges, bins, ranges=None, **attrs):
    rest = iter(edges)
    bins = [next(rest) if n is None else n for n in bins]
    return f(sample, bins, ranges, weights=weights, **attrs)


QUANTILES = ("quantile", "percentile", "nanquantile", "nanpercentile")
NUMPY_CALLS = {
    "polydiv": lambda f, u, v, *, length: f(u, v),
    "histogram": histogram_call,
    "histogramdd": histogramdd_call,
    **dict.fromkeys(
        QUANTILES, lambda f, x, q, *w, **attrs: f(x, q, weights=(*w, None)[0], **attrs)
    ),
    "vander": lambda f, x, *, n=None, **attrs: f(x, n, **attrs),
    "searchsorted": lambda f, a, v, *sorter, **attrs: f(a, v, sorter=(*sorter, None)[0], **attrs),
    **dict.fromkeys(("var", "std", "nanvar", "nanstd"), by_name("where", "mean")),
    **dict.fromkeys(("nansum", "nanprod", "nanmean", "nanmax", "nanmin"), by_name("where")),
    "cov": by_name("y", "fweights", "aweights"),
    **dict.fromkeys(("sum", "mean", "prod", "max", "min", "any", "all"), masked_call),
    **dict.fromkeys(("concatenate", "stack"), list_call),
    "split": lambda f, x, *, sections, **attrs: f(x, sections, **attrs),
    "pad": lambda f, x, *, width, **attrs: f(x, width, **pad_keywords(**attrs)),
    "choose": lambda f, a, *choices, **attrs: f(a, choices, **attrs),
    "lexsort": list_call,
    "sliding_window_view": lambda f, x, *, window, axis=None: f(x, window, axis),
    "ravel_multi_index": list_call,
    "logspace": lambda f, start, stop, base, **attrs: f(start, stop, base=base, **attrs),
    "eig": lambda f, x, *, real: f(x),
    "eigvals": lambda f, x, *, real: f(x),
    "lstsq": lambda f, a, b, *, rcond, full_rank: f(a, b, rcond),
    "multi_dot": list_call,
    "pinv": lambda f, x, *cutoff, hermitian, relative: f(
        x, *cutoff, hermitian=hermitian, **({"rtol": None} if relative else {})
    ),
    "matrix_rank": lambda f, x, *cutoff, hermitian, relative: f(
        x, hermitian=hermitian, **{"rtol" if relative else "tol": c for c in cutoff}
    ),
    "einsum": lambda f, *arrays, subscripts, **attrs: f(subscripts, *arrays, **attrs),
}


def numpy_call(op: Primitive, sample: Sample):
    """NumPy's callable for the op, as a function of the sample's operands."""
    f = next(iter(op.numpy))
    call = NUMPY_CALLS.get(op.name, lambda f, *args, **attrs: f(*args, **attrs))
    return lambda *args: call(f, *args, **sample.attrs)


def is_numpys(op: Primitive, sample: Sample) -> bool:
    """Whether NumPy has the op with these attributes; in NumPy a shape is not an operand."""
    attrs = sample.attrs
    if op.name == "copy" and not isinstance(sample.args[0], np.ndarray):
        return False  # np.copy makes an array of a number, which is another operation
    return bool(op.numpy) and attrs.get("shape", ()) is not None and attrs.get("width") != ()


@each_sample(is_numpys, in_one_test=True)
def test_a_numpy_call_is_recorded_as_one_bind_and_agrees_with_numpy(op, sample):
    call = numpy_call(op, sample)

    expected = call(*sample.args)
    program = trace(call, *sample.args)

    assert [op] == [bind.op for bind in program.binds]
    assert_same(expected, run_forward(program, *sample.args))


OTHER_CALLS = [
    pytest.param(f, id=name)
    for name, f in {
        "moveaxis": lambda x: np.moveaxis(x, 0, -1),
        "moveaxis of several": lambda x: np.moveaxis(x, (0, -1), (1, 0)),
        "swapaxes": lambda x: np.swapaxes(x, 0, -1),
        "array_split": lambda x: np.array_split(x, 2, axis=1),
        "split at edges": lambda x: np.split(x, [1, 2], axis=-1),
        "einsum with lists": lambda x: np.einsum(x, [0, 1, 2], [2, 0]),
        "reshape method": lambda x: x.reshape(4, -1),
        "astype": lambda x: x.astype(np.float32),
        "index": lambda x: x[0, ..., None],
    }.items()
]


@pytest.mark.parametrize("f", OTHER_CALLS)
def test_other_spellings_of_a_numpy_call_are_recorded_as_one_bind(f):
    x = np.linspace(0.0, 1.0, 24).reshape(2, 3, 4)

    program = trace(f, x)

    assert len(program) == 1
    assert_same(f(x), run_forward(program, x))
