"""control_flow."""
