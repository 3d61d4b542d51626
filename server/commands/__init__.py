"""The command line. Each command, or group of related commands, is implemented in one module."""
