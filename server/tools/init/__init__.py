"""`bifolio init`: creates a new site, or proposes content types for a folder that already contains files."""
