"""What all figures share. Colours are safe for colour-blind readers (Okabe & Ito; viridis for quantities)."""

FRONT = "#d55e00"
CONTEXT = "#56b4e9"
EMPTY = "#eeeeee"
QUANTITY = "viridis"
