"""The documentation, and the tools that keep it up to date (`python -m docs`)."""
