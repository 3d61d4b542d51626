"""Media in an S3-compatible bucket, and their descriptions in git (docs/media.md)."""
