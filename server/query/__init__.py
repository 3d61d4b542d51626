"""Parser that checks query parameters against the schema."""
