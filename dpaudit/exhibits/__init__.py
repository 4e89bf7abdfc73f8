"""The museum: real bugs in differential-privacy code as data, and what an auditor finds of them.

`Exhibit` is one bug; `museum` lists those of all installed packages. What runs them (`dpaudit.exhibits.running`) is not
imported here, so that a package of exhibits depends on claims and domains alone.

(The room is not called `museum`: `dpaudit.museum` is always the function.)
"""

from dpaudit.exhibits.exhibit import CHANNELS, KINDS, Exhibit, Kind, Release, museum

__all__ = ["CHANNELS", "KINDS", "Exhibit", "Kind", "Release", "museum"]
