"""Runs: what is configured, executed, recorded and loaded again."""
