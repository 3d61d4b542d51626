"""File storage: reads, parses and atomically writes files. Subpackages cover git, images and buckets."""
