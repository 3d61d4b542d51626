"""Which commit an answer is of, and requests that are to be answered from one, or from a later one."""
