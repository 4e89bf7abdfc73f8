"""Reproductions of published experiments: what one is, and the command that runs them."""
