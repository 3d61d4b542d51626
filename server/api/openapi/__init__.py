"""The OpenAPI document of a site, generated from the table of operations and the schemas."""
