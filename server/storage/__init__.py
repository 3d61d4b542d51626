"""Files on disk: read, parsed, written in one step, and known to git."""
