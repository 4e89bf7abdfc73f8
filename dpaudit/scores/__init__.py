"""Audits from scores: what an attack's scores of canaries prove of a training run, or of many."""

from dpaudit.scores.auditing import audit_scores
from dpaudit.scores.result import ScoresResult, load_scores

__all__ = ["ScoresResult", "audit_scores", "load_scores"]
