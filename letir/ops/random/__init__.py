"""Keys, draws, distributions."""
