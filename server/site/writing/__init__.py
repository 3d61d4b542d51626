"""Preparation of writes, and agreement with a git remote before they are made."""
