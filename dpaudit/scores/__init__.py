"""Audits from scores: what an attack's scores of canaries prove of a training run, or of many."""

from dpaudit.scores.auditing import audit_scores
from dpaudit.scores.published import audit_published
from dpaudit.scores.result import ScoresResult, load_scores
from dpaudit.scores.training import TrainingRecord, audit_training

__all__ = ["ScoresResult", "TrainingRecord", "audit_published", "audit_scores", "audit_training", "load_scores"]
