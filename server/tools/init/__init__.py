"""`quire init`: a site from nothing, or content types for a tree of Markdown files that is there already."""
