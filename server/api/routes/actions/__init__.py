"""What is done to a document as a whole: it is unpublished, its draft discarded (docs/writing.md)."""
