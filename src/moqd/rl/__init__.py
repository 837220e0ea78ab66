"""Reinforcement learning: the replay buffer, running statistics, and the actor and critics."""
