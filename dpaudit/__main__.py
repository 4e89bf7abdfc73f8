"""`python -m dpaudit`: the same as the command `dpaudit`."""

from dpaudit.cli import run

if __name__ == "__main__":  # worker processes import this module under another name
    run()
