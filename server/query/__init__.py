"""Query parser: turns request parameters into an immutable syntax tree, validated against the schema."""
