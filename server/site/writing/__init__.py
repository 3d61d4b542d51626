"""Preparation of writes, including those that the git remote must accept first."""
