"""How offspring are made."""
