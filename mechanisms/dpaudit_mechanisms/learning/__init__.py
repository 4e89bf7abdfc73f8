"""Private learning: DP-SGD with its accountant, PATE, synthetic data from noisy marginals; each with faulty twins."""
