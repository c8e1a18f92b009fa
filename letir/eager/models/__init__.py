"""Lt.jit_model, lt.verify."""
