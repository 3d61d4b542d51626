"""TOML: parser with positions, and editor that keeps all other bytes."""
