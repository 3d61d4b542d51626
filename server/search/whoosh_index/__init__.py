"""The index of words on disk, made with whoosh3: the only modules that know the library."""
