"""Wrappers around the git command."""
