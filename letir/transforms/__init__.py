"""What users call: grad, vjp, vmap, hessian, checkpoint (Python functions and Lambdas)."""
