"""What NumPy asks of a traced value."""
