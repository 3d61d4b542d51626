"""The words of a query string that mean true and false."""

TRUE = ("true", "t", "1")
FALSE = ("false", "f", "0")
