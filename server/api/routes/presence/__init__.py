"""/presence: who is at which document, and in which field."""
