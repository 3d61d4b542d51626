"""The studio: the page at /studio where editors work, and how they come in (docs/studio.md)."""
