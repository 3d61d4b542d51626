"""The accounts database: its tables, and how it is opened, in a file of SQLite or in PostgreSQL."""
