"""Connections to a site's databases and transactions in them.

A database is an SQLite file or in PostgreSQL.
"""
