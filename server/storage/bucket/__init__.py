"""Media files in an S3-compatible bucket. Their description files stay in git (docs/media.md)."""
