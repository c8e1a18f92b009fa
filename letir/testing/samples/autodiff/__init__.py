"""autodiff."""
