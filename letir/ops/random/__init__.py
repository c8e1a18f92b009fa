"""Random numbers: keys, draws, distributions, and NumPy's generators as arguments."""
