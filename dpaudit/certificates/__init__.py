"""Certificates under their first name: `dpaudit.symbolic` has replaced this package; call `dpaudit.certify`."""

from dpaudit.symbolic.certificate import Certificate, CertifiedPair, Event, load_certificate
from dpaudit.symbolic.certifying import certify

__all__ = ["Certificate", "CertifiedPair", "Event", "certify", "load_certificate"]
