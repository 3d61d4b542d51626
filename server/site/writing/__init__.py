"""Writes of the site: how they are prepared, and agreed with a git remote before they are made."""
