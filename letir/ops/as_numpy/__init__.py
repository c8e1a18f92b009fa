"""How each record is written as NumPy source."""
