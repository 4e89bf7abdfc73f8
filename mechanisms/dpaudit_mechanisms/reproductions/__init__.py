"""Published experiments with the reference mechanisms, for `dpaudit reproduce`: one experiment a file."""
