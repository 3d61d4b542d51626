"""JSON: text → tree with positions, values → text, and edits that keep every other byte."""
