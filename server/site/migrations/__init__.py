"""Schema changes that also change documents and settings (docs/migrate.md)."""
