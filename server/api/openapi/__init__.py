"""The OpenAPI document for a site. It is generated from the table of operations and the schemas."""
