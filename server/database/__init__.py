"""Databases of a site, SQLite files or PostgreSQL: connections and transactions."""
