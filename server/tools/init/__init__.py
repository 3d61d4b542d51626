"""`bifolio init`: a new site, or content types for an existing tree of files."""
