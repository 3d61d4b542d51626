"""File storage: reading, parsing and atomically writing files; git, images and buckets."""
