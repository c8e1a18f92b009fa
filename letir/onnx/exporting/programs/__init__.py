"""Operations for which ONNX has no node, as programs of operations that have one."""
