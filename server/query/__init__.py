"""Query parser: checks request parameters against the schema, and returns an immutable syntax tree."""
