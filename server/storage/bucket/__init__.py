"""Media files in an S3-compatible bucket (docs/media.md)."""
