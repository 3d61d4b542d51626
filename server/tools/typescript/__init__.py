"""TypeScript types for the content of a site: what `quire types` writes."""
