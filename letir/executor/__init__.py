"""``jit`` and ``compile``: argument spec -> plan cache -> pipeline -> plan."""
