"""The command: search for counterexamples, claim by claim, and write the log."""

from dpaudit_mechanisms.counterexamples.searching import main

if __name__ == "__main__":
    main()
