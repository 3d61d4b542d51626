"""Authentication of callers, and checks of their permissions."""
