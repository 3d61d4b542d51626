"""TOML: parser, positions, and edits that keep every other byte."""
