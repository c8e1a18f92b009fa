"""NumPy's protocols for traced values: ufuncs, functions, methods, errstate."""
