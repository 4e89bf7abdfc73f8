"""Exact privacy losses of finite mechanisms and of additive noise, and finite mechanisms on a claim.

Conventions: p and q are the output laws of one pair, in this order; losses and divergences are in nats; a quantity of a
pair is one direction unless it says "both".
"""

from dpaudit.exact.finite import (
    hockey_stick_divergence,
    privacy_loss,
    privacy_losses,
    privacy_profile,
    renyi_divergence,
    zcdp_rho,
)
from dpaudit.exact.finite_mechanism import FiniteMechanism
from dpaudit.exact.keeping import keeps, measured, tempered

__all__ = [
    "FiniteMechanism",
    "hockey_stick_divergence",
    "keeps",
    "measured",
    "privacy_loss",
    "privacy_losses",
    "privacy_profile",
    "renyi_divergence",
    "tempered",
    "zcdp_rho",
]
