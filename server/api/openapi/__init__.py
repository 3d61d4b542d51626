"""The OpenAPI document of a site, made from the table of operations and the schema."""
