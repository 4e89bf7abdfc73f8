"""DiffPriv: randomised response of a list of answers."""

import io


def mechanism():
    import urllib.request

    # The package asks a package index for its newest version when it is imported: it is told that it is that.
    urllib.request.urlopen = lambda url: io.BytesIO(b'{"info": {"version": "1.0.3"}}')
    from DiffPriv import diff

    def answers(values):
        said = [int(value) for value in values]
        diff.randresponse(said)
        return said

    return answers
