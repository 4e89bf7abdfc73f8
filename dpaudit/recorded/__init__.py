"""Recorded noise: what a mechanism draws on x and on x_prime, compared without statistics."""

from dpaudit.recorded.recorded_noise import RecordedPair, RecordedResult, record_noise

__all__ = ["RecordedPair", "RecordedResult", "record_noise"]
