"""Handlers for /history: commits, diffs, blame, and restoring earlier versions."""
