"""YAML: parser with positions, writer, and an editor that keeps all other bytes."""
