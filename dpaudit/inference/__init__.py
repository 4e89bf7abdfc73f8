"""Inference: hypothesis tests of claims on tables of counts: e-processes, exact binomial tests, bounds and power."""
