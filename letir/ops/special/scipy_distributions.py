"""The distributions of ``scipy.stats`` whose methods ``scipy_call`` may call.

Distributions with formulas of their own are in ``densities``; SciPy computes their other methods.
"""

_CONTINUOUS = """
    alpha anglit arcsine argus beta betaprime bradford burr burr12 cauchy chi chi2 cosine
    crystalball dgamma dpareto_lognorm dweibull erlang expon exponnorm exponpow exponweib f
    fatiguelife fisk foldcauchy foldnorm gamma gausshyper genexpon genextreme gengamma
    genhalflogistic genhyperbolic geninvgauss genlogistic gennorm genpareto gibrat gompertz
    gumbel_l gumbel_r halfcauchy halfgennorm halflogistic halfnorm hypsecant invgamma invgauss
    invweibull irwinhall jf_skew_t johnsonsb johnsonsu kappa3 kappa4 ksone kstwo kstwobign landau
    laplace laplace_asymmetric levy levy_l levy_stable loggamma logistic loglaplace lognorm
    loguniform lomax maxwell mielke moyal nakagami ncf nct ncx2 norm norminvgauss pareto pearson3
    powerlaw powerlognorm powernorm rayleigh rdist recipinvgauss reciprocal rel_breitwigner rice
    semicircular skewcauchy skewnorm studentized_range t trapezoid triang truncexpon truncnorm
    truncpareto truncweibull_min tukeylambda uniform vonmises vonmises_line wald weibull_max
    weibull_min wrapcauchy
"""
_DISCRETE = """
    bernoulli betabinom betanbinom binom boltzmann dlaplace geom hypergeom logser nbinom
    nchypergeom_fisher nchypergeom_wallenius nhypergeom planck poisson poisson_binom randint
    skellam yulesimon zipf zipfian
"""
_OF_BOTH = """cdf entropy interval isf logcdf logsf mean median moment ppf sf stats std var"""
_METHODS = {"pdf logpdf": _CONTINUOUS, "pmf logpmf": _DISCRETE}
DISTRIBUTIONS: dict[str, frozenset[str]] = {
    f"stats.{name}": frozenset(f"{densities} {_OF_BOTH}".split())
    for densities, names in _METHODS.items()
    for name in names.split()
}
"""{distribution, such as "stats.norm": names of its methods}."""
