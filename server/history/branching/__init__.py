"""Branches: which there are, what each has changed, and writes to one that is not served."""
