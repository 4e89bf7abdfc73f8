"""Preprocessing of linear queries: which queries to answer instead of the asked ones, and with which noise."""

from mechanisms.preprocessing.descent import Preprocessed, preprocess
from mechanisms.preprocessing.problem import LOSSES, Loss, loss_value, mean_largest_noise

__all__ = ["LOSSES", "Loss", "Preprocessed", "loss_value", "mean_largest_noise", "preprocess"]
