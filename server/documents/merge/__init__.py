"""Three versions of a document's values → one with the changes of both sides, or what they both changed."""
