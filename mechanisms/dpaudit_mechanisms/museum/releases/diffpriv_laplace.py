"""DiffPriv: the Laplace mechanism for the mean of a column of a CSV file."""

import io
import os
import tempfile


def _offline():
    """The package asks a package index for its newest version when it is imported: it is told that it is that."""
    import urllib.request

    urllib.request.urlopen = lambda url: io.BytesIO(b'{"info": {"version": "1.0.3"}}')


def mechanism():
    _offline()
    from DiffPriv import diff

    def privatised(values):
        text = io.StringIO("".join(f"{float(value)}\n" for value in values))
        path = os.path.join(tempfile.mkdtemp(), "private.csv")
        diff.lapmech(text, path, 1.0, lambda column: sum(column) / len(column)).close()
        with open(path) as file:
            rows = [float(line.split(",")[0]) for line in file]
        os.remove(path)
        os.rmdir(os.path.dirname(path))
        return rows

    return privatised
