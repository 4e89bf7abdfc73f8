"""The errors that a user meets, each with the exit status that the command line gives for it.

Every message has one form: `<argument> must be <condition>, got <value>[ at <where>]. <What to do>`.
"""

from __future__ import annotations


class DpauditError(Exception):
    """Base of all errors that dpaudit raises on purpose; `exit_status` is what the command line returns for it."""

    exit_status: int = 3


class UsageError(DpauditError, ValueError):
    """Error of the caller: a claim, pair, metric, target or option that makes no sense (exit status 2)."""

    exit_status = 2


class UnknownOptionError(UsageError, TypeError):
    """A function was given an option that it does not have: a slip, which the message has the nearest name for."""


class SubjectError(DpauditError, RuntimeError):
    """The subject broke while it was audited: it raised on every call, or returned what cannot be read (status 3)."""

    exit_status = 3


class MechanismTraceback(Exception):
    """Stand-in for a mechanism's exception of which only the traceback is known, as text: the cause of an error."""

    @classmethod
    def of(cls, traceback: str) -> MechanismTraceback | None:
        """Error of a traceback as text; None if it is empty."""
        return cls(f"\n{traceback}") if traceback else None


class OutputError(DpauditError, RuntimeError):
    """A file could not be written to its end, as on a full disk: not what the caller could have known (status 3)."""

    exit_status = 3


class DpauditCheckpointWarning(UserWarning):
    """Nothing more can be noted in the checkpoint of an audit, which goes on without it."""


class ProgramError(SubjectError):
    """A program behind `exec:` broke the protocol or took too long: never an outcome of a draw (status 3)."""


class OutOfTimeError(SubjectError):
    """The time of an audit is over (`--seconds`) before it could look at what it drew (status 3)."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        given = "a limit that was" if seconds is None else f"{seconds:.6g} s, which were"
        super().__init__(
            f"the time must be enough for a first look at the outcomes, got {given} over before it. Take more seconds; "
            "an audit in sequential mode looks after every round."
        )

    def __reduce__(self) -> tuple[type[OutOfTimeError], tuple[float | None]]:
        return OutOfTimeError, (self.seconds,)


class DpauditFloatingPointWarning(UserWarning):
    """The low bits of a mechanism's outputs give more away than its claim allows; its verdict does not depend on it."""


class DpauditInconclusiveWarning(UserWarning):
    """An audit ended inconclusive: it found nothing, and could only have found a loss far above the budget."""


class DpauditNoteWarning(UserWarning):
    """An audit found nothing, and the outputs are degenerate (constant, all exceptions): perhaps a mistake."""
