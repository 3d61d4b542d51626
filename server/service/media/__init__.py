"""The media library, uploads, moves, and transfer between disk and bucket."""
