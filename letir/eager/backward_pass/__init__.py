"""The backward pass over the tape of Variables, in one thread or in several."""
