"""Elementwise operations, which broadcast: ufuncs, casts, comparisons, rounding, fused chains."""
