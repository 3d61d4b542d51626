"""Document versions: their file paths, their values, and the conversion of values to and from file
contents.
"""
