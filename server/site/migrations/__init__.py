"""Migrations: schema changes, along with the matching changes to all documents and settings.

See docs/migrate.md.
"""
