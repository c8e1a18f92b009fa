"""reductions."""
