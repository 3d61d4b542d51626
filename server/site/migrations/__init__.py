"""Migrations: changes to schemas that also change all documents and settings (docs/migrate.md)."""
