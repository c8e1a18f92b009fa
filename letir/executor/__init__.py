"""Lt.jit and lt.compile: argument spec -> plan cache -> pipeline -> plan."""
