"""TOML: parser with positions, and an editor that keeps all other bytes."""
