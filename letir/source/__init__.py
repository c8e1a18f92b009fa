"""Programs as NumPy source (``functions``, ``steps``), and compared side by side."""
