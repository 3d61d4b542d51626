"""The merge driver for git: merges document files attribute by attribute (docs/merge-driver.md)."""
