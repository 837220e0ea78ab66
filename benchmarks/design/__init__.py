"""Design problems with features, on which algorithms are compared: `python -m benchmarks.design`."""
