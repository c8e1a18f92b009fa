"""NumPy functions that no record takes (was plain_*)."""
