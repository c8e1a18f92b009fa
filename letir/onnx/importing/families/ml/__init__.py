"""Operators of the domain ``ai.onnx.ml``, with which scikit-learn's models are exported."""
