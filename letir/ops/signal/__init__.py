"""Signals: Fourier transforms, convolution, differences, interpolation, polynomials."""
