"""Lt.diff."""
