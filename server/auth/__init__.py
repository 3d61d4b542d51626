"""Authentication of callers, and the permissions of callers."""
