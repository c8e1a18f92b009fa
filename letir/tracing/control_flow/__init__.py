"""Lt.cond, lt.scan ... for Python callers."""
