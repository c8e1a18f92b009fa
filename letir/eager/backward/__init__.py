""".backward(."""
