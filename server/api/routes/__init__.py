"""Flask handlers of operations, one module per part of the API, and code that handlers share."""
