"""Media in a bucket: their objects, and what descriptions in git say of them (docs/media.md)."""
