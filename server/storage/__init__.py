"""File storage: reads, parses and atomically writes files. Subpackages handle git, images and buckets."""
