"""Measurements beside peers, as ratios."""
