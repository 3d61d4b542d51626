"""/branches: which branches there are, what each changes, and merging them."""
