"""Preparation of writes. With some settings, the git remote must accept a write before files change."""
