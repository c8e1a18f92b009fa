"""Fft, convolution of rows, differences, polynomials."""
