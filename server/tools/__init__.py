"""What editors and builds use beside the server, usable without the command line."""
