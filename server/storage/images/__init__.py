"""Image support: reads dimensions from file headers, and resizes or transforms images in separate
processes.
"""
