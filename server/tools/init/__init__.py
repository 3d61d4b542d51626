"""`bifolio init`: creates a new site, or content types for a folder that already contains files."""
