"""Handlers for /history: commits, differences between versions, blame, and restoring earlier versions."""
