"""Rate limits. A client's requests are counted together, no matter which worker or machine handles them."""
