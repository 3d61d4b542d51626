"""The handlers of operations: one module for each part of the API, and what they share of forms and users."""
