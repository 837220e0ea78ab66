"""Figures: one file per figure, each function draws into the `ax` it is given."""
