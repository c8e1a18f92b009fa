"""A function of arrays for each operator of ONNX, listed in ``OPERATORS`` of each file."""
