"""The studio, which is the web page for editors at /studio, and signing in to this page (docs/studio.md)."""
