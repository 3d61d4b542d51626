"""The git remote that a site follows: what comes from there is taken over into what is served."""
