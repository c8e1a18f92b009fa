"""SciPy's functions without operations of their own are recorded as calls of SciPy's functions."""

import importlib
import warnings

import numpy as np
import pytest
from scipy import cluster, interpolate, linalg, ndimage, optimize, signal, sparse, spatial, stats

import letir as lt
from letir.ops.special.scipy_distributions import DISTRIBUTIONS
from letir.ops.special.scipy_functions import FUNCTIONS
from letir.testing import assert_close, check_grads
from tests.each_sample import in_one_test

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 20))
MATRIX = RNG.normal(size=(4, 4))
MATRIX = MATRIX @ MATRIX.T + np.eye(4)


def same(expected, actual):
    """Check that two nested results agree in types and values."""
    assert type(expected) is type(actual) or isinstance(actual, tuple)
    if isinstance(expected, tuple | list):
        for a, b in zip(expected, actual, strict=True):
            same(a, b)
    else:
        assert np.asarray(expected).dtype == np.asarray(actual).dtype
        np.testing.assert_array_equal(expected, actual)


def test_the_table_names_functions_of_scipy():
    for part, names in FUNCTIONS.items():
        module = importlib.import_module(f"scipy.{part}")
        for name in names:
            assert name == getattr(module, name).__name__.removeprefix("function ")


def test_the_table_names_distributions_of_scipy():
    known = {
        f"stats.{name}"
        for name, value in vars(stats).items()
        if isinstance(value, stats.rv_continuous | stats.rv_discrete)
    }

    assert known - {"stats.rv_sample"} <= DISTRIBUTIONS.keys()
    for name, methods in DISTRIBUTIONS.items():
        if name in known:  # not in older versions of SciPy
            assert all(callable(getattr(getattr(stats, name[6:]), each)) for each in methods)


class Prior:
    def __init__(self):
        self.scale = stats.weibull_min(1.5)


PRIOR = Prior()
DRAWN = np.array([0.2, 0.5, 0.9])


@in_one_test
@pytest.mark.parametrize(
    "f",
    [
        lambda x: stats.alpha.cdf(x, 2.0),
        lambda x: stats.lognorm.pdf(x, 0.5, scale=2.0) + stats.beta.isf(x, 2, 3),
        lambda x: stats.binom.pmf(np.array([1, 2, 3]), 5, x) + stats.poisson.ppf(x, 3),
        lambda x: PRIOR.scale.ppf(x) + stats.truncnorm(-1, x).cdf(0.3),
        lambda x: stats.gamma.stats(x, moments="mv"),
        lambda x: (stats.norm.interval(x), stats.norm(x, 2.0).std(), stats.gamma.entropy(x)),
        lambda x: stats.t.mean(3.0, x) + stats.norm(x).mean() + stats.weibull_min(x).median(),
        lambda x: float(x[0]) + stats.rayleigh.sf(float(x[1])),
    ],
)
def test_other_methods_of_distributions_are_calls_of_scipy(f):
    recorded, again = lt.trace(f, DRAWN), 0.8 * DRAWN

    same(f(DRAWN), recorded(DRAWN))
    same(f(again), recorded(again))
    same(f(again), lt.jit(f)(again))
    assert "scipy_call" in [bind.op.name for bind in recorded.binds]


def test_a_call_of_a_distribution_has_a_source():
    text = lt.to_source(lt.trace(lambda x: stats.alpha.cdf(x, 2.0), DRAWN))

    space: dict = {}
    exec(text, space)
    same(stats.alpha.cdf(DRAWN, 2.0), space["f"](DRAWN))


def filtered(x):
    b, a = signal.butter(2, 0.3)
    y, state = signal.lfilter(b, a, x, zi=np.zeros(2))
    return y * 2, state


def spectrum(x):
    frequencies, power = signal.welch(x, nperseg=8)
    return frequencies[power.argmax()], power.sum()


def peak_heights(x):
    peaks, found = signal.find_peaks(x, height=0.2)
    return x[peaks].sum(), found["peak_heights"].mean()


def compared(x):
    t, p = stats.ttest_ind(x, 2 * x[::-1])
    return t, p


def line(x):
    found = stats.linregress(np.arange(len(x)), x)
    return found.slope, found.intercept, found.rvalue**2, found.intercept_stderr


def correlation(x):
    return stats.pearsonr(x, np.sin(x)).statistic


def solved(m):
    return linalg.lu_solve(linalg.lu_factor(m), np.ones(4))


def programmed(x):
    found = optimize.linprog(abs(x[:3]), A_ub=-np.eye(3), b_ub=-np.ones(3))
    return found.x, found.fun if found.success else 0.0


def assigned(m):
    rows, columns = optimize.linear_sum_assignment(m)
    return m[rows, columns].sum()


def clustered(x):
    return cluster.hierarchy.fcluster(
        cluster.hierarchy.linkage(x.reshape(-1, 2)), 3, criterion="maxclust"
    )


def components(x):
    labels, count = ndimage.label(x > 0)
    return labels, count


def far(x):
    return spatial.distance.pdist(x.reshape(-1, 4), "canberra").max()


def neighbours(x):
    tree = spatial.cKDTree(x.reshape(-1, 2))
    distances, places = tree.query(np.zeros(2), k=2)
    return distances, places


def outline(x):
    hull = spatial.ConvexHull(x.reshape(-1, 2))
    return hull.volume, len(hull.vertices)


def splined(x):
    spline = interpolate.UnivariateSpline(np.arange(20.0), x, s=0)
    return spline(np.array([0.5, 3.25])), spline.integral(0.0, 4.0)


def density(x):
    return stats.gaussian_kde(x)(np.zeros(1))


def sparse_system(x):
    ones = np.ones(len(x) - 1)
    matrix = sparse.diags([-ones, abs(x) + 2, -ones], [-1, 0, 1], format="csc")
    return sparse.linalg.spsolve(matrix, x), (matrix @ x), matrix.T.toarray().trace()


def summed(x):
    rows = np.arange(20) % 4
    matrix = sparse.coo_matrix((x, (rows, rows[::-1])), shape=(4, 4)).tocsr()
    return (2 * matrix + matrix.T).toarray(), isinstance(matrix, sparse.csr_matrix)


def factored(m):
    """Calls of LAPACK's own functions, with keywords too."""
    factor, info = linalg.lapack.dpotrf(m * 2.0, lower=1)
    lower, upper = np.diag(m, -1) * 0.1, np.diag(m, 1) * 0.1
    *_, x, failed = linalg.lapack.dgtsv(lower, np.diag(m), upper, m[0])
    return factor, x, info + failed


CASES = [filtered, spectrum, peak_heights, compared, line, correlation, solved, programmed]
CASES += [assigned, clustered, components, far, neighbours, outline, splined, density]
CASES += [sparse_system, summed, factored]
OBJECTS = (neighbours, outline, splined, density, sparse_system, summed)


def argument(f, seed=0):
    """A matrix for functions of m, else a vector."""
    rng = np.random.default_rng(seed)
    m = rng.normal(size=(4, 4))
    return m @ m.T + np.eye(4) if f.__code__.co_varnames[0] == "m" else rng.normal(size=20)


@in_one_test
@pytest.mark.parametrize("f", CASES)
def test_calls_replay_at_other_arguments(f):
    program = lt.trace(f, argument(f))

    same(f(argument(f)), program(argument(f)))
    try:
        found = program(argument(f, 1))
    except lt.GuardError:
        assert f in (peak_heights, components, spectrum, outline)
    else:
        same(f(argument(f, 1)), found)


@in_one_test
@pytest.mark.parametrize("f", CASES)
@pytest.mark.filterwarnings("error")
def test_jit_compiles_recorded_calls_of_scipy(f):
    fast = lt.jit(f)

    for seed in (0, 1, 2, 0):
        same(f(argument(f, seed)), fast(argument(f, seed)))
    # SciPy itself computes some of them in less time than the operations of a plan
    assert bool(fast.counters["compiles"]) != (f in (filtered, far))


@pytest.mark.parametrize("f", CASES)
def test_programs_are_written_and_read(f, tmp_path):
    program = lt.trace(f, argument(f))

    assert program == lt.parse(lt.dumps(program))
    if f in OBJECTS:
        same(f(argument(f)), lt.parse(lt.dumps(program))(argument(f)))
        with pytest.raises(lt.ExportError, match=r"to_source: .*scipy"):
            lt.to_source(program)
        return
    space: dict = {}
    exec(lt.to_source(program, name="written"), space)
    same(f(argument(f)), space["written"](argument(f)))


@pytest.mark.parametrize("by_name", [True, False])
def test_lapack_writes_into_its_arguments_as_in_numpy_if_it_is_told_to(by_name):
    def solved(a, b):
        if by_name:
            return linalg.lapack.dgesv(a, b, overwrite_b=1)[2], b
        return linalg.lapack.dgesv(a, b, 0, 1)[2], b

    a, b = np.asfortranarray(argument(factored)), np.linspace(1.0, 2.0, 4)
    ours, numpys = b.copy(), b.copy()
    with pytest.warns(RuntimeWarning, match="as Python"):
        found = lt.jit(solved)(a, ours)

    same(solved(a, numpys), found)
    np.testing.assert_array_equal(numpys, ours)


def test_another_shape_than_recorded_is_a_guard_error():
    program = lt.trace(lambda x: signal.find_peaks(x)[0], np.array([0.0, 1, 0, 0, 0]))

    with pytest.raises(lt.GuardError, match=r"signal.find_peaks returned int64\[1\].*int64\[2\]"):
        program(np.array([0.0, 1, 0, 1, 0]))


def test_a_length_alone_is_guarded():
    fast = lt.jit(lambda x: x * len(signal.find_peaks(x)[0]))
    program = lt.trace(lambda x: x * len(signal.find_peaks(x)[0]), np.array([0.0, 1, 0, 0, 0]))

    for x in (np.array([0.0, 1, 0, 0, 0]), np.array([0.0, 1, 0, 1, 0]), np.zeros(5)):
        same(x * len(signal.find_peaks(x)[0]), fast(x))
    with pytest.raises(lt.GuardError):
        program(np.zeros(5))


def test_integer_results_let_a_gradient_through():
    def total(x):
        return x[signal.find_peaks(x)[0]].sum()

    np.testing.assert_array_equal([0, 1, 0], lt.grad(total)(np.array([0.0, 1, 0])))


@pytest.mark.parametrize(
    "transform", [lambda f: lt.grad(f)(X), lambda f: lt.jvp(f, (X,), (X,))], ids=["grad", "jvp"]
)
def test_a_derivative_is_an_error_that_names_the_function(transform):
    with pytest.raises(lt.MissingRule, match=r"scipy.stats.pearsonr has no derivative"):
        transform(correlation)


def test_vmap_calls_it_for_each_example():
    batch = RNG.normal(size=(3, 20))
    program = lt.vmap(lt.trace(lambda x: signal.medfilt(x, 3), X))

    np.testing.assert_array_equal([signal.medfilt(x, 3) for x in batch], program(batch))


def test_abstract_arguments_are_a_named_error():
    with pytest.raises(lt.TraceError, match=r"scipy.stats.pearsonr of an abstract traced value"):
        lt.trace(correlation, lt.ShapeDtype((20,), float))


@pytest.mark.parametrize("name", ["os.system", "signal.nothing", "io.loadmat", "signal..butter"])
def test_a_file_cannot_name_another_function(name):
    text = lt.dumps(lt.trace(lambda x: signal.medfilt(x, 3), X))

    with pytest.raises(lt.LetirError, match="not among the functions of SciPy"):
        lt.parse(text.replace("signal.medfilt", name))(X)


def test_an_error_of_scipy_reaches_the_caller_of_jit():
    fast = lt.jit(linalg.lu_factor)

    with pytest.raises(ValueError, match="infs or NaNs"):
        fast(np.full((2, 2), np.nan))


def guarded_factor(m):
    try:
        return linalg.lu_factor(m)[0]
    except ValueError:
        return 0 * m


@pytest.mark.filterwarnings("ignore:.*as Python")
def test_a_caught_error_of_scipy_takes_the_same_path():
    fast = lt.jit(guarded_factor)

    for m in (MATRIX, np.full((2, 2), np.nan), MATRIX):
        same(guarded_factor(m), fast(m))
    program = lt.trace(guarded_factor, np.full((2, 2), np.nan))
    other = np.array([[np.nan, 1.0], [2.0, 3.0]])
    same(guarded_factor(other), program(other))
    with pytest.raises(lt.GuardError, match="raised ValueError, now it raises"):
        program(np.eye(2))


def test_an_error_of_scipy_that_nothing_catches_is_scipys():
    with pytest.raises(ValueError, match="must not contain infs or NaNs"):
        lt.trace(lambda m: linalg.lu_factor(m)[0], np.full((2, 2), np.nan))


def test_arguments_that_scipy_writes_into_are_not_recorded():
    with pytest.raises(lt.TraceError):
        lt.trace(lambda x: linalg.lu_factor(x, overwrite_a=True), MATRIX)


@pytest.mark.filterwarnings("ignore:.*as Python")
def test_effects_before_a_call_with_another_shape_happen_once():
    def marked(x, counts):
        counts += 1
        peaks = signal.find_peaks(x)[0]
        return peaks * counts[0]

    fast = lt.jit(marked)
    for x in (np.array([0.0, 1, 0, 0, 0]), np.array([0.0, 1, 0, 1, 0]), np.zeros(5)):
        counts, others = np.zeros(1), np.zeros(1)
        same(marked(x, others), fast(x, counts))
        same(others, counts)


def test_results_of_scipy_are_named_tuples():
    found = lt.jit(lambda x: stats.ttest_1samp(x, 0.0))(X)

    assert (found.statistic, found.pvalue) == tuple(stats.ttest_1samp(X, 0.0))
    with pytest.raises(AttributeError, match="confidence_interval"):
        found.confidence_interval()


@pytest.mark.filterwarnings("ignore:.*as Python")
@pytest.mark.parametrize(
    "use",
    [
        lambda tree: tree.query_ball_point(np.zeros(2), 1.0),
        lambda tree: sorted(tree.query_pairs(0.5)),
        lambda tree: tree.sparse_distance_matrix(tree, 1.0).toarray(),
        lambda tree: spatial.cKDTree.query(tree, np.zeros(2))[0],
        lambda tree: str(type(tree)),
    ],
)
def test_other_uses_of_an_object_are_errors_of_trace(use):
    def used(x):
        return use(spatial.cKDTree(x.reshape(-1, 2)))

    assert str(used(X)) == str(lt.jit(used)(X)) or "RecordedObject" in str(lt.jit(used)(X))


@pytest.mark.parametrize("member", ["query", "data"])
def test_a_file_cannot_name_another_method(member):
    program = lt.trace(lambda x: spatial.cKDTree(x.reshape(-1, 2)).m * x, X)
    text = lt.dumps(program)

    for name in ("__reduce__", "__class__", "tree", "__init__"):
        with pytest.raises(lt.LetirError, match="not among the functions of SciPy"):
            lt.parse(text.replace("cKDTree.m", f"cKDTree.{name}"))(X)
    with pytest.raises(lt.LetirError):
        lt.parse(text.replace("'spatial.cKDTree', (", "'os.system', ("))(X)


def test_methods_of_results_run_as_python_under_jit():
    def interval(x):
        return stats.ttest_1samp(x, 0.0).confidence_interval().low

    with pytest.warns(RuntimeWarning, match="as Python"):
        assert interval(X) == lt.jit(interval)(X)


@in_one_test
@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        (lambda x, out: ndimage.grey_erosion(x, 3, output=out), int),
        (lambda x, out: ndimage.morphological_laplace(x, (2, 3), output=out), int),
        (lambda x, out: ndimage.percentile_filter(x, 30, 3, None, out), np.float32),
        (lambda x, out: ndimage.zoom(x, 1, output=out), int),
        (lambda x, out: ndimage.fourier_shift(x, 0.5, output=out), complex),
    ],
)
def test_a_result_is_written_into_the_array_for_it(call, dtype):
    def f(x, out):
        result = call(x, out)
        return result, result is out, out.sum()

    def with_own_array(x):
        out = np.empty((3, 4), dtype)
        return f(x, out), out

    x = np.array([[3, 2, 5, 1], [7, 6, 9, 3], [5, 8, 3, 7]])
    wanted = np.zeros((3, 4), dtype)
    same(f(x, wanted), lt.trace(f, x, np.zeros((3, 4), dtype))(x, (found := np.zeros_like(wanted))))
    same(wanted, found)
    same(f(x, wanted), lt.jit(f)(x, (found := np.zeros_like(wanted))))
    same(wanted, found)
    same(with_own_array(x + 1), lt.trace(with_own_array, x)(x + 1))


@in_one_test
@pytest.mark.parametrize(
    "f",
    [
        lambda x, out: (ndimage.label(x > 3, output=out), out),
        lambda x, out: (spatial.distance.cdist(x, x[[0, 1, 2, 0]], out=out), out),
        lambda x, out: (ndimage.generic_filter(x, np.max, 3, output=out), out),
    ],
)
def test_other_functions_that_write_into_an_array_are_refused(f):
    x = np.array([[3, 2, 5, 1], [7, 6, 9, 3], [5, 8, 3, 7]])
    dtype = float if "cdist" in f.__code__.co_names else int

    with pytest.raises(lt.TraceError, match=r"is not recorded|wrote into a copy of a traced array"):
        lt.trace(f, x, np.zeros((3, 4), dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that jit calls f as Python
        same(f(x, np.zeros((3, 4), dtype)), lt.jit(f)(x, np.zeros((3, 4), dtype)))


DISTINCT = 0.3 * RNG.normal(size=(4, 4)) + np.diag([0.0, 2.0, 4.0, 7.0])
TURNING = DISTINCT @ np.array([[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1], [0, 0, -1, 0.0]])


def of_a_symmetric_matrix(**options):
    def f(a):
        w, v = linalg.eigh(a + a.T, **options)
        return w, v * v

    return f


@in_one_test
@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda a: [np.abs(y) ** 2 for y in linalg.eig(a)], DISTINCT),
        (lambda a: [np.abs(y) ** 2 for y in linalg.eig(a)], TURNING),
        (lambda a: (linalg.eigvals(a) ** 3).sum().real, TURNING),
        (lambda a: linalg.eigvals(a).real, DISTINCT),
        (of_a_symmetric_matrix(subset_by_index=[1, 2]), DISTINCT),
        (of_a_symmetric_matrix(subset_by_index=[0, 0], lower=False), DISTINCT),
        (of_a_symmetric_matrix(driver="evd"), DISTINCT),
        (lambda a: linalg.eigvalsh(a + a.T, subset_by_index=[2, 3]), DISTINCT),
        (lambda a: linalg.eigh(a + a.T, eigvals_only=True, subset_by_index=[1, 3]), DISTINCT),
        (lambda a: linalg.qr(a, mode="economic"), DISTINCT[:, :2]),
        (lambda a: linalg.qr(a), DISTINCT),  # noqa: PLW0108  read while recorded
        (lambda a: linalg.pinv(a, rtol=1e-9), DISTINCT[:3]),
        (lambda a: linalg.pinvh(a + a.T), DISTINCT),
    ],
)
def test_decompositions_by_scipy_have_derivatives(f, x):
    same(f(x), lt.trace(f, x)(x))
    check_grads(f, (x,), order=2)


def test_the_derivative_of_complex_eigenvectors_is_numpys():
    a = DISTINCT + 0.2j * DISTINCT.T

    def loss(decompose):
        return lambda a: sum((np.abs(y) ** 2 * (1 + y.real)).sum() for y in decompose(a))

    assert_close(lt.grad(loss(np.linalg.eig))(a), lt.grad(loss(linalg.eig))(a), rtol=1e-9)


def test_other_options_of_decompositions_have_no_derivative():
    for f in (
        lambda a: linalg.eigh(a + a.T, subset_by_value=[0.0, 5.0])[0].sum(),
        lambda a: linalg.eig(a, left=True)[0].sum().real,
        lambda a: linalg.hessenberg(a)[0].sum(),
    ):
        with pytest.raises(lt.MissingRule, match=r"linalg.\w+ has no derivative here"):
            lt.grad(f)(DISTINCT)
