"""Media files in an S3-compatible bucket. Their descriptions stay in git (docs/media.md)."""
