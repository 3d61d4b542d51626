"""File storage: reads and parses files, and writes them atomically. Subpackages: git, images and buckets."""
