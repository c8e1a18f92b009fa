"""Prices, rates and portfolios."""

import math

import numpy as np

from tests.programs.table import program


def normal_cdf(x):
    """The distribution function of the normal distribution."""
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


@program(lambda rng: (rng.uniform(90, 110), 100.0, 0.02, rng.uniform(0.1, 0.3), 1.0), smooth=3)
def black_scholes(S, K, r, sigma, T):
    """The price of a call and of a put, with delta and vega."""
    d1 = (math.log(S / K) + (r + sigma**2 / 2) * T) / (sigma * math.sqrt(T))
    d2 = d1 - sigma * math.sqrt(T)
    call = S * normal_cdf(d1) - K * math.exp(-r * T) * normal_cdf(d2)
    vega = S * math.exp(-(d1**2) / 2) / math.sqrt(2 * math.pi) * math.sqrt(T)
    return {
        "call": call,
        "put": call - S + K * math.exp(-r * T),
        "delta": normal_cdf(d1),
        "vega": vega,
    }


@program(lambda rng: (rng.uniform(90, 110), rng.uniform(0.2, 0.4)))
def american_put(spot, sigma, strike=100.0, rate=0.03, steps=8):
    """A binomial tree with early exercise."""
    dt = 1.0 / steps
    u = math.exp(sigma * math.sqrt(dt))
    d = 1 / u
    p = (math.exp(rate * dt) - d) / (u - d)
    prices = np.array([spot * u**j * d ** (steps - j) for j in range(steps + 1)])
    values = np.maximum(strike - prices, 0)
    for i in range(steps - 1, -1, -1):
        for j in range(i + 1):
            hold = math.exp(-rate * dt) * (p * values[j + 1] + (1 - p) * values[j])
            exercise = strike - spot * u**j * d ** (i - j)
            values[j] = np.maximum(hold, exercise)
    return values[0]


@program(lambda rng: (rng.uniform(90, 110), 0.2, int(rng.integers(1000))), smooth=0)
def asian_option(spot, sigma, seed):
    """The mean payoff of simulated paths, the seed given."""
    rng = np.random.RandomState(7)
    paths = np.zeros((6, 10))
    paths[0] = spot
    for t in range(1, 6):
        z = rng.standard_normal(10)
        paths[t] = paths[t - 1] * np.exp((0.01 - 0.5 * sigma**2) * 0.2 + sigma * math.sqrt(0.2) * z)
    payoff = np.log1p(np.exp(paths.mean(axis=0) - 100 + seed * 0))
    return payoff.mean()


@program(lambda rng: (rng.uniform(90, 110), int(rng.integers(1000))), smooth=0, branches=True)
def value_at_risk(spot, seed):
    """Quantiles of simulated losses by a generator that the seed makes."""
    rng = np.random.default_rng(seed)
    shocks = rng.normal(0, 0.02, size=(20, 3)).sum(axis=1)
    losses = spot - spot * np.exp(shocks)
    return np.quantile(losses, 0.95), losses[losses > 0].mean()


@program(lambda rng: (rng.uniform(40, 60, size=5),), branches=True)
def internal_rate(flows):
    """The rate at which flows pay back 200, by Newton's method with a tolerance."""
    rate = 0.1
    for _ in range(50):
        value, slope = -200.0, 0.0
        for t, flow in enumerate(flows, start=1):
            value += flow / (1 + rate) ** t
            slope -= t * flow / (1 + rate) ** (t + 1)
        new = rate - value / slope
        if abs(new - rate) < 1e-10:
            return new
        rate = new
    raise ValueError("did not converge")


@program(lambda rng: (rng.normal(0.01, 0.05, size=(20, 3)),), smooth=0)
def minimum_variance(returns):
    """Weights of the portfolio of least variance and its risk."""
    mu = np.mean(returns, axis=0)
    cov = np.cov(returns, rowvar=False)
    ones = np.ones(len(mu))
    inverse = np.linalg.pinv(cov)
    weights = inverse @ ones / (ones @ inverse @ ones)
    return weights, np.sqrt(weights @ cov @ weights), weights @ mu


@program(lambda rng: (rng.uniform(0.9, 1.1, size=12),), branches=True)
def drawdown(growth):
    """The largest loss from a peak, and how long ago the peak was."""
    value = np.cumprod(growth)
    peak, worst = value[0], 0.0
    since = 0
    for v in value:
        since = np.where(v >= peak, 0, since + 1)
        peak = max(peak, v)
        worst = min(worst, v / peak - 1)
    return worst, since


@program(lambda rng: (rng.normal(size=20), np.array([0.1, 0.1, 0.8])), smooth=1)
def garch_likelihood(returns, theta):
    """The negative log likelihood of a model of changing variance."""
    omega, alpha, beta = theta
    n = len(returns)
    sigma2 = np.zeros(n)
    sigma2[0] = returns.var()
    for t in range(1, n):
        sigma2[t] = omega + alpha * returns[t - 1] ** 2 + beta * sigma2[t - 1]
    return 0.5 * np.sum(np.log(2 * np.pi * sigma2) + returns**2 / sigma2)


class Bond:
    """Coupons and a face value."""

    def __init__(self, face, coupon, years):
        self.face, self.coupon, self.years = face, coupon, years

    def flows(self):
        """Pairs of a time and a payment."""
        for year in range(1, self.years + 1):
            yield year, self.coupon * self.face + (self.face if year == self.years else 0)

    def price(self, rate):
        """The value of the payments at a rate."""
        return sum(c / (1 + rate) ** t for t, c in self.flows())

    def duration(self, rate):
        """Macaulay's duration."""
        return sum(t * c / (1 + rate) ** t for t, c in self.flows()) / self.price(rate)


@program(lambda rng: (rng.uniform(0.01, 0.05), 5), smooth=0)
def bond(rate, years):
    """Price, duration and the mean over shifted rates."""
    asset = Bond(100.0, 0.03, years)
    shifted = np.array([asset.price(rate + shift) for shift in np.linspace(-0.01, 0.01, 3)])
    return asset.price(rate), asset.duration(rate), shifted.mean()
