"""The OpenAPI document for a site, generated from the table of operations and the schemas."""
