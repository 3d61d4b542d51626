"""Background jobs for a site: applying other workers' changes, committing, resizing images, finding
problems.
"""
