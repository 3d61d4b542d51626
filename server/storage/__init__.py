"""File storage: reads, parses and atomically writes files."""
