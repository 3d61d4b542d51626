"""The text of a file as a tree with positions, and edits that keep every other byte."""
