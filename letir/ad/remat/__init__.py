"""Rematerialisation: which residuals are kept."""
