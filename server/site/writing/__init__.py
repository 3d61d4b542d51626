"""Preparation of writes. If the settings require it, the git remote must accept each write before files
change.
"""
