"""The databases of a site, in files of SQLite or in PostgreSQL: how they are opened and written."""
