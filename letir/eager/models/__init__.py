"""Models that are recorded on their first call (``jit_model``), and ``verify``."""
