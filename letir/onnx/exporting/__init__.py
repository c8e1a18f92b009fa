"""Programs as ONNX models: ``exported_models`` exports, the other files hold families of rules."""
