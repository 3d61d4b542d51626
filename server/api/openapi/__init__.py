"""What a site's API is, as an OpenAPI document, made from the tables that the server itself works with."""
