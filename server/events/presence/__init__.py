"""Who is at which document, and in which field: told among clients, and kept nowhere but in memory."""
