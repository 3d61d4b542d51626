"""The studio: the web page for editors at /studio, and its sign-in (docs/studio.md)."""
