"""Calls that make no sense, each refused by one line that says what must be otherwise and what was given."""

import pytest

from dpaudit.errors import UsageError

# What was given, or that nothing was. Two messages about arrays of many numbers do not say it.
SAYS_WHAT = ("got ", "must be given", "none of zeros alone.", "0 at the value of each dataset.")


def refusals(*rows):
    """Make a test of each (call, first words of the message)."""

    @pytest.mark.parametrize(("call", "words"), rows)
    def refused(call, words):
        with pytest.raises(UsageError, match=words) as raised:
            call()
        message = str(raised.value)
        assert "\n" not in message and message.endswith((".", "?", "`", "'"))
        assert " must " not in message or any(what in message for what in SAYS_WHAT), message

    return refused
