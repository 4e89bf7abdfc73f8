"""Certificates: a mechanism with finitely many outcomes of its draws, run through all of them.

`dpaudit.certify` (`certifying`) explores every input (`exploring`) with a generator whose draws are choices
(`tracing`, `generator`, `python_random`). Uniform numbers that are only compared (`uniform_numbers`), and geometric
ones (`whole_numbers`), stay symbols that are split exactly, through conversions too (`conversions`). Runs are watched
for other randomness (`watching`), their outputs become outcomes (`leaves`), and two laws are compared in fractions
(`divergences`, `renyi`, `judging`). Before a verdict, laws are held against runs with real numbers (`real_runs`). What
is proved is a `Certificate` (`certificate`).
"""

from dpaudit.certificates.certificate import Certificate, CertifiedPair, Event, load_certificate
from dpaudit.certificates.certifying import certify

__all__ = ["Certificate", "CertifiedPair", "Event", "certify", "load_certificate"]
