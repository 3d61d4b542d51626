"""YAML: writer, parser with positions, and editor that keeps all other bytes."""
