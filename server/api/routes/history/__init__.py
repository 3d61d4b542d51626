"""Handlers for /history: commits, differences between versions, blame, and restore."""
