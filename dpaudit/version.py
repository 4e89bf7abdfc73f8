"""The version of dpaudit, alone so that any room may read it."""

__version__ = "0.1.0"
