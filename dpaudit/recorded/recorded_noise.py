"""Recorded noise under its first name; `dpaudit.symbolic.recorded_noise` has replaced this module."""

from dpaudit.symbolic.recorded_noise import MOST_RECORDED, RecordedPair, RecordedResult, Recorder, record_noise

__all__ = ["MOST_RECORDED", "RecordedPair", "RecordedResult", "Recorder", "record_noise"]
