"""Reading, parsing and atomic replacement of a site's files."""
