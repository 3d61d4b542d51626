"""Identities and permissions of callers."""
