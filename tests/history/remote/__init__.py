"""Tests with several machines that share a git remote."""
