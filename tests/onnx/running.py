"""Exported models run by onnxruntime, or by onnx's reference evaluator where that has no kernel."""

import numpy as np
import onnx
import onnxruntime
import optree
from onnx.reference import ReferenceEvaluator

import letir as lt
from letir.ast.symbolic_sizes import is_static_shape

_OPTIONS = onnxruntime.SessionOptions()
_OPTIONS.intra_op_num_threads = _OPTIONS.inter_op_num_threads = 1
_OPTIONS.log_severity_level = 4
# operations whose numbers are not determined by their meaning, with the reason
UNDETERMINED = {
    "eigh": "the signs of the vectors are a choice of LAPACK",
    "svd": "the signs of the vectors are a choice of LAPACK",
    "partition": "NumPy says nothing about the order of each part",
    "unknown_slope": "its gradient raises an error",
    "squeeze": "NumPy removes the axis of symbolic size where it is 1",
}
# operations with a derivative that ONNX cannot express, with the reason
REFUSED = {
    **dict.fromkeys(
        [
            *("dropout", "generator_draw", "random_normal", "random_uniform", "random_gamma"),
            *("random_exponential", "random_bernoulli", "random_randint", "random_categorical"),
            *("random_truncated_normal", "random_permutation", "random_choice"),
        ],
        "random numbers of a key or generator that is an input",
    ),
    **dict.fromkeys(["eig", "eigvals", "wofz"], "their results are complex"),
    "triangular_schur_form": "there is no Schur form",
    "all_pole_filter": "there is no recursive filter",
    "nextafter": "there is no access to the bits of numbers",
    "logm": "there is no Schur form",
    "odeint": "there are no differential equations",
    "betainc_slope": "there is no derivative of the incomplete beta function",
    "vector_integral": "there is no adaptive quadrature",
    **dict.fromkeys(["scipy_call", "scipy_solve"], "there are no functions of SciPy"),
    "generalized_eigh": "there are no eigenvalues of pairs",
}
TOLERANCES = {np.float64: 1e-12, np.float32: 1e-5, np.float16: 1e-2}


def exported(f, path=None, **options):
    """The model of a program or function, which the checker and shape inference pass."""
    model = lt.onnx.export(f, path, **options)
    onnx.checker.check_model(model, full_check=True)
    return model


def results_of(model, args) -> list:
    """The results of a model, after the checker and shape inference have passed it."""
    onnx.checker.check_model(model, full_check=True)
    names = [given.name for given in model.graph.input]
    feeds = dict(zip(names, map(real_pairs, args), strict=True))
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), _OPTIONS, providers=["CPUExecutionProvider"]
        )
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return ReferenceEvaluator(model).run(None, feeds)
    return session.run(None, feeds)


def real_pairs(x) -> np.ndarray:
    """An array, for complex numbers with a last axis of both parts."""
    x = np.asarray(x)
    return np.stack([x.real, x.imag], axis=-1) if x.dtype.kind == "c" else x


def kinds_of(model) -> list[str]:
    """The operators of a model's nodes."""
    return [node.op_type for node in model.graph.node]


def assert_agrees(model, program, args) -> None:
    """Assert that a model gives the program's numbers, dtypes and shapes."""
    wanted = optree.tree_leaves(program(*args))
    if not wanted:  # effects only: runtimes refuse a model without results
        assert not model.graph.output
        return
    found = results_of(model, args)
    # a Python number with an array of low precision is computed in this precision
    kinds = {x.dtype.type for x in map(np.asarray, args) if x.dtype.kind == "f"}
    for x, y in zip(found, map(real_pairs, wanted), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        floating = y.dtype.kind == "f"
        tolerance = max([TOLERANCES.get(kind, 0) for kind in (y.dtype.type, *kinds)]) * floating
        finite = np.abs(y)[np.isfinite(y)]
        scale = max(1, np.max(finite, initial=0))
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale)


def weighted(y, kind):
    """An array times other numbers for each element; its square if the size is not known."""
    if kind is None or not is_static_shape(kind.shape):
        return y * y
    weights = np.cos(0.3 + np.arange(y.size)).reshape(y.shape)
    return y * weights.astype(y.real.dtype)


def gradient_of(program, args):
    """The gradient of a weighted sum of a program's floating results; None without such
    arguments, or with results whose types are not known.
    """
    places = [i for i, p in enumerate(program.params) if p.type.dtype.kind in "fc"]
    if not places or any(arg.type is None for arg in program.ret.args):
        return None

    def total(*xs):
        results = program(*xs)
        results = results if isinstance(results, tuple) else (results,)
        # a result may be a Python number
        results = [y if hasattr(y, "dtype") else np.asarray(y) for y in results]
        pairs = zip(results, program.ret.args, strict=True)
        parts = [weighted(y, arg.type).sum() for y, arg in pairs if y.dtype.kind in "fc"]
        total = sum(parts, start=np.zeros(()) if not parts else 0)
        return total.real + 0.5 * total.imag if total.dtype.kind == "c" else total

    given = [
        x if p.type.weak else lt.ShapeDtype(p.type.shape, p.type.dtype)
        for x, p in zip(args, program.params, strict=True)
    ]
    return lt.grad(lt.trace(total, *given), argnums=tuple(places))
