"""Exact privacy losses of finite mechanisms and of additive noise, and finite mechanisms on a claim.

Conventions: p and q are the output laws of one pair, in this order; losses and divergences are in nats; a quantity of a
pair is one direction unless it says "both".
"""

from dpaudit.exact.additive import (
    gaussian_privacy_loss,
    gaussian_privacy_profile,
    gaussian_renyi_divergence,
    gaussian_rho,
    laplace_privacy_loss,
    laplace_privacy_profile,
    laplace_renyi_divergence,
)
from dpaudit.exact.finite import (
    hockey_stick_divergence,
    over_pairs,
    privacy_loss,
    privacy_losses,
    privacy_profile,
    renyi_divergence,
    trade_off_function,
    zcdp_rho,
)
from dpaudit.exact.finite_mechanism import FiniteMechanism
from dpaudit.exact.keeping import keeps, measured, tempered

__all__ = [
    "FiniteMechanism",
    "gaussian_privacy_loss",
    "gaussian_privacy_profile",
    "gaussian_renyi_divergence",
    "gaussian_rho",
    "hockey_stick_divergence",
    "keeps",
    "laplace_privacy_loss",
    "laplace_privacy_profile",
    "laplace_renyi_divergence",
    "measured",
    "over_pairs",
    "privacy_loss",
    "privacy_losses",
    "privacy_profile",
    "renyi_divergence",
    "tempered",
    "trade_off_function",
    "zcdp_rho",
]
