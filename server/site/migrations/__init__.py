"""Migrations: changes to schemas, along with the matching changes to all documents and settings
(docs/migrate.md).
"""
