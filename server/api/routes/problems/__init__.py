"""/problems: what is wrong with the files of the site, and fixes of it that are safe."""
