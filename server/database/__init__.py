"""Connections to a site's databases, which are SQLite files or in PostgreSQL, and transactions in them."""
