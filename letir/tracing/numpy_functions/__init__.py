"""NumPy functions without a record of their own: each is written with other operations."""
