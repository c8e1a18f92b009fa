"""Linear algebra: products of arrays, decompositions, linear systems, norms."""
