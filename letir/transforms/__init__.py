"""The public transforms of functions and Lambdas: grad, vjp, vmap, hessian, checkpoint."""
