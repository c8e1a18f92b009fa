"""Functions of ``scipy.special``, and densities and distribution functions of ``scipy.stats``."""
