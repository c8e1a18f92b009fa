"""Products, decompositions, solvers."""
