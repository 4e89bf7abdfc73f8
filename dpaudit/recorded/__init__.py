"""Recorded noise under its first name; `dpaudit.symbolic` has replaced this package: call `dpaudit.record_noise`."""

from dpaudit.symbolic.recorded_noise import RecordedPair, RecordedResult, record_noise

__all__ = ["RecordedPair", "RecordedResult", "record_noise"]
