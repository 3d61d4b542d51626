"""The merge driver for git, which merges document files attribute by attribute (docs/merge-driver.md)."""
