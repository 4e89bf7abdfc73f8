"""Programs of real releases: one function `mechanism()` a file, which imports the library when it is called.

Each is served in an environment of its own (`dpaudit.exhibits.serving`), so none imports anything of this project.
"""

from pathlib import Path


def program(name: str) -> Path:
    """The file of a program."""
    return Path(__file__).with_name(f"{name}.py")
