"""`bifolio init`: a new site, or content types for an existing folder of files."""
