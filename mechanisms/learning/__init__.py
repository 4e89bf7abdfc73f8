"""Private learning: DP-SGD with its accountant, PATE, and synthetic data from noisy marginals; each with faulty twins."""
