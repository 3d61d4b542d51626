"""YAML: a writer, a parser that returns positions, and an editor that leaves all other bytes unchanged."""
