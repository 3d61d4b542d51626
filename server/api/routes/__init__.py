"""Flask handlers for the operations (one module for each part of the API), and code that they share."""
