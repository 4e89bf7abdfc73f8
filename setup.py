"""Reproducible builds, which pyproject.toml cannot ask for: the same files give the same bits, whenever they are built.

Wheels keep to `SOURCE_DATE_EPOCH` already; the sdist is written again in an order, with fixed times, owners and modes.
"""

import gzip
import os
import tarfile
from pathlib import Path

from setuptools import setup
from setuptools.command.sdist import sdist

EARLIEST = "315532800"  # 1980, the first time that a zip file can hold
os.environ.setdefault("SOURCE_DATE_EPOCH", EARLIEST)


class ReproducibleSdist(sdist):
    """An sdist that depends on the names, contents and executable bits of its files alone."""

    def make_archive(self, *arguments, **options):
        file = super().make_archive(*arguments, **options)
        if file.endswith(".tar.gz"):
            rewrite(Path(file), int(os.environ["SOURCE_DATE_EPOCH"]))
        return file


def rewrite(file: Path, time: int) -> None:
    """Write a .tar.gz again with sorted entries of this time, nobody's, readable by all."""
    new = file.with_suffix(".new")
    with (
        tarfile.open(file) as old,
        open(new, "wb") as stream,
        gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for entry in sorted(old.getmembers(), key=lambda entry: entry.name):
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = time, 0, 0, "", ""
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            entry.pax_headers = {}
            archive.addfile(entry, old.extractfile(entry) if entry.isfile() else None)
    new.replace(file)


setup(cmdclass={"sdist": ReproducibleSdist})
