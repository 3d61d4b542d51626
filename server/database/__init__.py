"""Connections and transactions for a site's databases, which are SQLite files or in PostgreSQL."""
