"""Calls that make no sense, each refused by one line that says what must be otherwise and what was given."""

import pytest

from dpaudit.errors import UsageError

# The messages that do not say what was given: an array of many numbers each.
WITHOUT_VALUE = ("none of zeros alone.", "0 at the value of each dataset.", "finite and not 0.")


def refusals(*rows):
    """Make a test of each (call, first words of the message)."""

    @pytest.mark.parametrize(("call", "words"), rows)
    def refused(call, words):
        with pytest.raises(UsageError, match=words) as raised:
            call()
        message = str(raised.value)
        assert "\n" not in message and message.endswith((".", "?", "`", "'"))
        assert " must " not in message or "got " in message or message.endswith(WITHOUT_VALUE), message

    return refused
