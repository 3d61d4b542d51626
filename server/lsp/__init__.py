"""The language server (`bifolio lsp`), with which editors check, complete and rename content."""
