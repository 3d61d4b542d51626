"""YAML: a writer, a parser with positions, and an editor that leaves all other bytes unchanged."""
