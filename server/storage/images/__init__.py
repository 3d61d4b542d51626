"""Pictures: their sizes, told by their headers, and their smaller formats, made by a process of its own."""
