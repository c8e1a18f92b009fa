"""Formulas: NumPy functions that equal functions of SciPy, from which ``scipy_call`` takes its
derivatives.
"""
