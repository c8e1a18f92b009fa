"""Reductions along axes: sums, extrema, statistics, quantiles, histograms, cumulative sums."""
