"""Preparation of writes. If the settings require it, a git remote accepts each write before files change."""
