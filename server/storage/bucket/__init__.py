"""Media in an S3-compatible bucket, with descriptions in git (docs/media.md)."""
