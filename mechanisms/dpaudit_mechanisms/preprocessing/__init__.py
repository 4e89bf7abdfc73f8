"""Preprocessing of linear queries: which queries to answer instead of the asked ones, and with which noise."""

from dpaudit_mechanisms.preprocessing.descent import Preprocessed, preprocess
from dpaudit_mechanisms.preprocessing.problem import LOSSES, Loss, loss_value, mean_largest_noise

__all__ = ["LOSSES", "Loss", "Preprocessed", "loss_value", "mean_largest_noise", "preprocess"]
