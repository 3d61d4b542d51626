"""Media files: the library, uploads, moves, and the transfer between the disk and the bucket."""
