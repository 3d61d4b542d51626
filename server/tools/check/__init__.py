"""`quire check`: everything that is wrong with a site, and mending what is safe to mend."""
