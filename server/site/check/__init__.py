"""Everything that is wrong with a site, and fixing what is safe to fix: what `bifolio check` finds."""
