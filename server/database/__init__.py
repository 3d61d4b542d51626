"""Connections and transactions for a site's databases, which are either SQLite files or in PostgreSQL."""
