"""Kernels of convolutions over two axes, which copy no windows."""
