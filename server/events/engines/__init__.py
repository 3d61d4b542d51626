"""Where the log of events is kept: in a file of SQLite, or in tables of PostgreSQL."""
