"""Isolation: somebody else's code is called in worker processes, with limits of time, memory and output.

A process of its own, the *fork server* (`fork_server.py`), is forked before anything is drawn and forks every *worker*
(`worker.py`) from the state that the subject had then. A worker makes calls and writes their outcomes into memory that
it shares with the auditor, so that what was drawn before a call that kills the worker is kept. A call that does not
come back is an outcome, `Ended`, of that call.

*Fork, and not spawn*: a subject need not be picklable (a closure, an object with handles), a new worker takes a few
milliseconds instead of the seconds that imports take, and every worker starts from the same state. What is feared of
forks, locks that another thread held, is kept away by the fork server, which has one thread and only ever forks.

It contains accidents and misbehaviour. It is no security boundary: a worker has the rights of the user who audits, and
importing the subject happens before it.
"""

from dpaudit.subjects.isolation.limits import Isolation, as_isolation
from dpaudit.subjects.isolation.subject import IsolatedSubject, OutOfPatience, as_audited, isolated

__all__ = ["IsolatedSubject", "Isolation", "OutOfPatience", "as_audited", "as_isolation", "isolated"]
