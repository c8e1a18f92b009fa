"""Control flow for Python callers: ``cond``, ``scan``, ``while_loop``, ``map`` and others."""
