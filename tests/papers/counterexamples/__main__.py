"""The command: search for counterexamples, claim by claim, and write the log."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from counterexamples.searching import main

if __name__ == "__main__":
    main()
