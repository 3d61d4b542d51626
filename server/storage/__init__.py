"""File storage: reads and parses files, and writes them atomically. Subpackages handle git, images and
buckets.
"""
