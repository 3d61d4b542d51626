"""YAML: parser with positions, writer, and editor that changes only the necessary bytes."""
