"""`bifolio init`: makes a new site, or content types for an existing tree of Markdown files."""
