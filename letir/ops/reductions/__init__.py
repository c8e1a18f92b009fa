"""Sums, statistics, cumulative."""
