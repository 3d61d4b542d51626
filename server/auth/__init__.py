"""Authentication of callers, and their permissions."""
