"""TOML: text → tree, where everything in it stands, and edits that keep every other byte."""
