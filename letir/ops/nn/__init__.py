"""Activations, losses, convolution, normalisation."""
