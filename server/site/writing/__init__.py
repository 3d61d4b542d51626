"""Preparation of writes, and their acceptance by a git remote before they are made."""
