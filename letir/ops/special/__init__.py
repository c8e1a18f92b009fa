"""Scipy.special and densities."""
