"""The functions that ``scipy_call`` may call, and the forms of their arguments and results.

They compute arrays, numbers and strings from arrays, numbers and strings, and read nothing else: no
files, no state, no random numbers. A program from a file can call these functions only.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from letir.ast.attrs import Here
from letir.ast.types import PYTHON_NUMBERS, WEAK, ArrayType, number_dtype
from letir.errors import DTypeError, ExportError
from letir.ops.special.scipy_distributions import DISTRIBUTIONS

_NAMES = {
    "cluster.hierarchy": """cophenet cut_tree fcluster fclusterdata inconsistent leaves_list linkage
        maxdists maxinconsts optimal_leaf_ordering""",
    "cluster.vq": "vq whiten",
    "fft": """dct dctn dst dstn fft fft2 fftn fht hfft idct idctn idst idstn ifft ifft2 ifftn ifht
        ihfft irfft irfft2 irfftn rfft rfft2 rfftn""",
    "fftpack": "dct dctn dst dstn fft fft2 fftn idct idctn idst idstn ifft ifft2 ifftn irfft rfft",
    "integrate": "cumulative_simpson cumulative_trapezoid romb simpson trapezoid",
    "interpolate": """bisplev bisplrep griddata insert interpn
        krogh_interpolate pchip_interpolate spalde splantider splder splev splint splprep splrep
        sproot""",
    "linalg": """bandwidth block_diag cdf2rdf cho_factor cho_solve cho_solve_banded cholesky
        cholesky_banded circulant companion convolution_matrix cosm coshm det diagsvd eig eig_banded
        eigh eigh_tridiagonal eigvals eigvals_banded eigvalsh eigvalsh_tridiagonal expm expm_cond
        expm_frechet hankel hessenberg inv ishermitian issymmetric khatri_rao ldl leslie lstsq lu
        lu_factor lu_solve matmul_toeplitz matrix_balance norm null_space orth
        orthogonal_procrustes pinv pinvh polar qr qr_delete qr_insert qr_multiply qr_update qz rq
        rsf2csf schur sinhm sinm solve solve_banded solve_continuous_are
        solve_continuous_lyapunov solve_discrete_are solve_discrete_lyapunov solve_sylvester
        solve_toeplitz solve_triangular solveh_banded sqrtm subspace_angles svd svdvals tanhm tanm
        toeplitz""",
    "ndimage": """affine_transform binary_closing binary_dilation binary_erosion binary_fill_holes
        binary_hit_or_miss binary_opening binary_propagation black_tophat center_of_mass convolve
        convolve1d correlate correlate1d distance_transform_bf distance_transform_cdt
        distance_transform_edt extrema fourier_ellipsoid fourier_gaussian fourier_shift
        fourier_uniform gaussian_filter gaussian_filter1d gaussian_gradient_magnitude
        gaussian_laplace grey_closing grey_dilation grey_erosion grey_opening histogram label
        laplace map_coordinates maximum maximum_filter maximum_filter1d maximum_position mean median
        median_filter minimum minimum_filter minimum_filter1d minimum_position
        morphological_gradient morphological_laplace percentile_filter prewitt rank_filter rotate
        shift sobel spline_filter spline_filter1d standard_deviation sum_labels uniform_filter
        uniform_filter1d variance watershed_ift white_tophat zoom""",
    "optimize": "isotonic_regression linear_sum_assignment linprog lsq_linear nnls",
    "signal": """argrelmax argrelmin bessel bilinear bode butter buttord cheb1ord cheb2ord cheby1
        cheby2 chirp coherence cont2discrete convolve2d correlate correlate2d correlation_lags csd
        decimate deconvolve detrend dimpulse dlsim dstep ellip ellipord filtfilt find_peaks
        find_peaks_cwt firls firwin firwin2 freqresp freqs freqz freqz_zpk gammatone gausspulse
        group_delay hilbert hilbert2 iircomb iirdesign iirfilter iirnotch iirpeak impulse invres
        invresz istft kaiser_atten kaiser_beta kaiserord lfilter lfilter_zi lfiltic lombscargle lsim
        medfilt medfilt2d normalize order_filter peak_prominences peak_widths periodogram remez
        resample resample_poly residue residuez savgol_coeffs savgol_filter sawtooth sepfir2d
        sos2tf sos2zpk sosfilt sosfilt_zi sosfiltfilt spectrogram square ss2tf ss2zpk step stft
        sweep_poly tf2sos tf2ss tf2zpk unique_roots upfirdn vectorstrength welch wiener zpk2sos
        zpk2ss zpk2tf""",
    "sparse.linalg": "bicgstab cg cgs gmres lsmr lsqr minres spsolve",
    "sparse.csgraph": """bellman_ford breadth_first_order connected_components depth_first_order
        dijkstra floyd_warshall johnson laplacian shortest_path""",
    "spatial": "distance_matrix geometric_slerp minkowski_distance procrustes",
    "spatial.distance": """braycurtis canberra cdist chebyshev cityblock correlation cosine dice
        euclidean hamming jaccard jensenshannon mahalanobis minkowski pdist rogerstanimoto
        russellrao seuclidean sokalsneath sqeuclidean squareform yule""",
    "special": """comb factorial factorial2 factorialk jn_zeros jnp_zeros lambertw perm roots_chebyt
        roots_hermite roots_jacobi roots_laguerre roots_legendre spherical_in spherical_jn
        spherical_kn spherical_yn yn_zeros""",
    "stats": """alexandergovern ansari bartlett binned_statistic binned_statistic_2d boxcox
        boxcox_llf brunnermunzel chi2_contingency chisquare circmean circstd circvar
        combine_pvalues cramervonmises_2samp cumfreq describe differential_entropy energy_distance
        entropy epps_singleton_2samp expectile f_oneway false_discovery_control fisher_exact fligner
        friedmanchisquare gmean gstd gzscore hmean iqr jarque_bera kendalltau kruskal ks_2samp kstat
        kstatvar kurtosis kurtosistest levene linregress mannwhitneyu median_abs_deviation
        median_test mode moment mood normaltest obrientransform pearsonr percentileofscore pmean
        pointbiserialr power_divergence rankdata ranksums relfreq scoreatpercentile sem shapiro
        siegelslopes sigmaclip skew skewtest somersd spearmanr theilslopes tiecorrect tmax tmean
        tmin trim1 trim_mean trimboth tsem tstd ttest_1samp ttest_ind ttest_ind_from_stats ttest_rel
        tvar variation wasserstein_distance weightedtau wilcoxon yeojohnson yeojohnson_llf zmap
        zscore""",
}
_OF_LAPACK = """gbsv gbtrf gbtrs gecon geev gels geqrf gesdd gesv gesvd getrf getri getrs gtsv gttrf
    gttrs pbsv pbtrf pbtrs posv potrf potri potrs ptsv pttrf pttrs syev syevd syevr sysv sytrf trcon
    trtri trtrs"""
_NAMES["linalg.lapack"] = " ".join(f"s{name} d{name}" for name in _OF_LAPACK.split())
FUNCTIONS: dict[str, frozenset[str]] = {
    part: frozenset(names.split()) for part, names in _NAMES.items()
}
"""{part of SciPy: the names of its functions}."""


_SPLINE = "__call__ derivatives get_coeffs get_knots get_residual integral roots"
_SPARSE = """__add__ __matmul__ __mul__ __neg__ __rmatmul__ __rmul__ __sub__ __truediv__ diagonal
    dot max mean min multiply power sum toarray tocoo tocsc tocsr transpose"""
_CLASSES = {  # class: (methods, attributes)
    "interpolate.CloughTocher2DInterpolator": ("__call__", ""),
    "interpolate.InterpolatedUnivariateSpline": (_SPLINE, ""),
    "interpolate.LSQUnivariateSpline": (_SPLINE, ""),
    "interpolate.LinearNDInterpolator": ("__call__", ""),
    "interpolate.NearestNDInterpolator": ("__call__", ""),
    "interpolate.RBFInterpolator": ("__call__", ""),
    "interpolate.RectBivariateSpline": ("__call__ ev get_coeffs get_knots integral", ""),
    "interpolate.RegularGridInterpolator": ("__call__", ""),
    "interpolate.UnivariateSpline": (_SPLINE, ""),
    "spatial.ConvexHull": ("", "area equations neighbors points simplices vertices volume"),
    "spatial.Delaunay": ("find_simplex", "convex_hull neighbors points simplices transform"),
    "spatial.KDTree": ("count_neighbors query", "data m n"),
    "spatial.Voronoi": ("", "point_region points ridge_points vertices"),
    "spatial.cKDTree": ("count_neighbors query", "data m n"),
    "sparse.coo_array": (_SPARSE, "T col data nnz row shape"),
    "sparse.coo_matrix": (_SPARSE, "T col data nnz row shape"),
    "sparse.csc_array": (_SPARSE, "T data indices indptr nnz shape"),
    "sparse.csc_matrix": (_SPARSE, "T data indices indptr nnz shape"),
    "sparse.csr_array": (_SPARSE, "T data indices indptr nnz shape"),
    "sparse.csr_matrix": (_SPARSE, "T data indices indptr nnz shape"),
    "sparse.dia_array": (_SPARSE, "T data nnz offsets shape"),
    "sparse.dia_matrix": (_SPARSE, "T data nnz offsets shape"),
    "stats.gaussian_kde": (
        "__call__ evaluate integrate_box_1d integrate_gaussian logpdf pdf",
        "covariance d factor n",
    ),
}
METHODS = {name: frozenset(methods.split()) for name, (methods, _) in _CLASSES.items()}
"""{class of SciPy: methods that a program may call}; the object is their first argument."""
ATTRIBUTES = {name: frozenset(attributes.split()) for name, (_, attributes) in _CLASSES.items()}
"""{class of SciPy: attributes that a program may read, like methods of the object alone}."""
MAKERS: dict[str, frozenset[str]] = {"sparse": frozenset(["block_diag", "diags", "kron"])}
for _name in _CLASSES:
    _part, _, _kind = _name.rpartition(".")
    MAKERS[_part] = MAKERS.get(_part, frozenset()) | {_kind}
"""{part of SciPy: its classes, and functions that return their objects}."""
_CALLED = [FUNCTIONS, METHODS, ATTRIBUTES, MAKERS, DISTRIBUTIONS]
_SOLVERS = {
    "integrate": "quad solve_ivp",
    "optimize": """bisect brenth brentq curve_fit fmin fmin_bfgs fmin_cg fmin_powell fminbound
        fsolve least_squares minimize minimize_scalar newton ridder root root_scalar toms748""",
}
SOLVERS: dict[str, frozenset[str]] = {
    part: frozenset(names.split()) for part, names in _SOLVERS.items()
}
"""{part of SciPy: the names of its functions that take functions}, see ``scipy_solve``."""


def split_name(function: Any, tables: Sequence[dict] = _CALLED) -> tuple[str, str]:
    """(part, name) of ``signal.find_peaks``. Raises DTypeError unless it is in the tables."""
    part, _, name = function.rpartition(".") if type(function) is str else ("", "", "")
    if not any(name in table.get(part, ()) for table in tables):
        raise DTypeError(
            f"scipy_call: {function!r} is not among the functions of SciPy that a program may call"
            "\n  letir.opaque(function, aval) makes an operation of your own"
        )
    return part, name


# ---- arguments ----


def fill_form(
    form: Any, operands: Iterator, functions: Sequence = (), call: Callable | None = None
) -> Any:
    """Arguments of this form, with operands in the places of ``Here``.

    A form is ``Here()`` for the next operand, a number, a string, None, ("function", place),
    ("call", name, arguments) for an object that ``call(name, positional, keywords)`` makes, or a
    tuple that starts with "list", "tuple" or "dict"; the items of the latter are pairs (key, form).
    """
    if type(form) is Here:
        return next(operands)
    if type(form) is not tuple:
        return form
    kind, *parts = form or ("",)
    if kind == "function":
        return functions[parts[0]]
    if kind == "call" and call is not None:
        return call(parts[0], *fill_form(parts[1], operands, functions, call))
    if kind == "dict":
        return {key: fill_form(part, operands, functions, call) for key, part in parts}
    items = [fill_form(part, operands, functions, call) for part in parts]
    return items if kind == "list" else tuple(items)


def count_operands(form: Any, functions: int = 0) -> int:
    """The number of operands of a form. Raises DTypeError if it is not a form of arguments.

    ``functions``: the number of functions to which it may refer.
    """
    if type(form) is Here:
        return 1
    if type(form) is not tuple:
        if form is None or type(form) in (str, *PYTHON_NUMBERS):
            return 0
        raise _malformed_error(form)
    kind, *parts = form or ("",)
    if kind == "function" and len(parts) == 1 and parts[0] in range(functions):
        return 0
    if kind == "call" and len(parts) == 2 and is_call(parts[1]):
        split_name(parts[0])
        return count_operands(parts[1], functions)
    if kind == "dict" and all(_is_pair(part) for part in parts):
        return sum([count_operands(part, functions) for _, part in parts])
    if kind not in ("list", "tuple"):
        raise _malformed_error(form)
    return sum([count_operands(part, functions) for part in parts])


def is_call(form: Any) -> bool:
    """Whether a form is that of positional and keyword arguments."""
    if type(form) is not tuple or len(form) != 3 or form[0] != "tuple":
        return False
    _, positional, keywords = form
    return all(type(part) is tuple for part in form[1:]) and (
        (positional[:1], keywords[:1]) == (("tuple",), ("dict",))
    )


def _is_pair(part: Any) -> bool:
    return type(part) is tuple and len(part) == 2 and type(part[0]) is str


def _malformed_error(form: Any) -> DTypeError:
    return DTypeError(
        f"scipy_call: {form!r} is not a form of arguments or results\n"
        "  record the program again with letir.trace"
    )


# ---- results ----


def describe_result(result: Any) -> tuple[Any, list]:
    """(form, arrays and numbers in order) of the result of a SciPy function.

    The form has a type for each array or number, ("array", type) for an array without axes, and
    strings; the items of "fields" and "dict" are pairs (name, form). Raises DTypeError for objects.
    """
    leaves: list = []
    return _form_of(result, leaves), leaves


def _form_of(value: Any, leaves: list) -> Any:
    kind = type(value)
    if value is None or kind is str:
        return value
    if kind in WEAK:
        leaves.append(value)
        return WEAK[kind]
    is_device_array = hasattr(value, "__dlpack__") and not hasattr(value, "emitter")
    if isinstance(value, np.generic) or kind is np.ndarray or is_device_array:
        leaves.append(value)
        result = ArrayType(number_dtype(value.dtype), value.shape)
        return ("array", result) if kind is np.ndarray and not value.shape else result
    if kind in (list, tuple):
        return (kind.__name__, *[_form_of(item, leaves) for item in value])
    if isinstance(value, dict):
        return ("dict", *[(str(key), _form_of(item, leaves)) for key, item in value.items()])
    fields = named_fields(value)
    if fields is None:
        raise DTypeError(
            f"scipy_call: a result is an object of type {kind.__name__}, "
            "which a program cannot hold\n"
            "  call the function before the trace"
        )
    return ("fields", *[(name, _form_of(item, leaves)) for name, item in fields.items()])


def named_fields(result: Any) -> dict[str, Any] | None:
    """The fields of a named tuple, and its other attributes; None for other objects."""
    names = getattr(result, "_fields", None)
    if not isinstance(result, tuple) or not isinstance(names, list | tuple):
        return None
    more = {name: getattr(result, name) for name in getattr(result, "_extra_fields", ())}
    for name, value in getattr(result, "__dict__", {}).items():
        is_number = type(value) in WEAK or isinstance(value, np.generic)
        if is_number and not name.startswith("_") and name not in names:
            more[name] = value
    return {**dict(zip(names, result, strict=True)), **more}


def result_types(form: Any) -> list[ArrayType]:
    """The types in a form of results. Raises DTypeError if it is not one."""
    if isinstance(form, ArrayType):
        return [form]
    if form is None or type(form) is str:
        return []
    kind, *parts = form if type(form) is tuple and form else ("",)
    if kind == "array" and len(parts) == 1 and isinstance(parts[0], ArrayType):
        return parts
    if kind in ("fields", "dict") and all(map(_is_pair, parts)):
        parts = [part for _, part in parts]
    elif kind not in ("list", "tuple"):
        raise _malformed_error(form)
    return [aval for part in parts for aval in result_types(part)]


def result_paths(form: Any, path: str) -> list[str]:
    """The Python expressions of the arrays in a result of this form; ``path`` is the result's."""
    if type(form) is not tuple:
        return [path] if isinstance(form, ArrayType) else []
    kind, *parts = form
    if kind == "array":
        return [path]
    if kind == "fields":
        paths = [result_paths(part, f"{path}.{name}") for name, part in parts]
    elif kind == "dict":
        paths = [result_paths(part, f"{path}[{name!r}]") for name, part in parts]
    else:
        paths = [result_paths(part, f"{path}[{i}]") for i, part in enumerate(parts)]
    return [text for texts in paths for text in texts]


def argument_text(form: Any, operands: Iterator[str], literal: Callable[[Any], str]) -> str:
    """The Python expression of an argument; ``literal`` writes numbers and strings."""
    if type(form) is Here:
        return next(operands)
    if type(form) is not tuple:
        return literal(form)
    kind, *parts = form
    if kind == "call":
        raise ExportError(
            f"to_source: an object that scipy.{parts[0]} makes has no form in NumPy\n"
            "  save the program with letir.save"
        )
    if kind == "dict":
        pairs = [f"{key!r}: {argument_text(part, operands, literal)}" for key, part in parts]
        return f"{{{', '.join(pairs)}}}"
    items = ", ".join([argument_text(part, operands, literal) for part in parts])
    return f"[{items}]" if kind == "list" else f"({items},)" if parts else "()"
