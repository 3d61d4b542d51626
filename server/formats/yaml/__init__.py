"""YAML: a writer, a parser that returns positions, and an editor that leaves unchanged bytes as they are."""
