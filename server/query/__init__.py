"""Query parser: checks parameters against the schema."""
