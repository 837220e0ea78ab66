"""Reinforcement learning: what was experienced, how rewards are scaled, the actor and critics that learn from it."""
