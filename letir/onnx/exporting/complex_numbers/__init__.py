"""Complex numbers as pairs of real ones, and Fourier transforms, which ONNX has on such pairs."""
