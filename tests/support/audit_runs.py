"""The state of an audit of one pair, as its stages read it."""

from dpaudit.audits.audit_run import AuditRun
from dpaudit.audits.options import Options
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects.callables import as_subject


def run_of(mechanism, pair, claim, samples, seed, monotone="density"):
    """An audit of one pair with a band, before its first draw."""
    options = Options(samples, "sequential", 0.95, seed, 0.1, 2.0, None, None, band=True, monotone=monotone)
    return AuditRun(as_subject(mechanism), claim, [pair], options, seed, WorkerPool(), pairs=[pair], claims=[claim])
