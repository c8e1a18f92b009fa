"""ONNX models as programs: ``imported_models`` loads a model; ``families`` holds operators."""
