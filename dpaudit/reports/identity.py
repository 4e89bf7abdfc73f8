"""Sigstore bundles: an in-toto statement signed by an identity, for ten minutes, in the place of a key.

A certificate authority (Fulcio) certifies who the signer is by a token of an OpenID issuer, and a log (Rekor) has the
signature; both are in the bundle, so that it is verified without them, under a trusted root. What is done here is the
choice of what is signed and who must have signed: `sigstore` does the rest. Needs the extra `sigstore`.

The subjects of such a statement are the saved results, by their SHA-256: the tools of Sigstore and of GitHub look for
a file's digest there. Mechanisms and their fingerprints are in its configuration, as in a statement signed with a key.
"""

from __future__ import annotations

import json
import os
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.files import LIMITS, parsed_json, parsing, read_text
from dpaudit.reports.envelope import Verified, result_of

MISSING = "identity must have sigstore installed, got none. Use pip install 'dpaudit[sigstore]'."


def signed(statement: str, token: Any = None, context: Any = None) -> str:
    """The bundle of a statement, signed by the identity of this process, as JSON with a line end.

    Parameters
    ----------
    statement : str
        An in-toto test result, as JSON.
    token : str, optional
        Of an OpenID issuer; by default that which a CI job is given.
    context : sigstore.sign.SigningContext, optional
        The authority and the log; by default those of the public instance of Sigstore.

    `UsageError` if sigstore is not installed, results are redacted, there is no identity, or an authority refuses it.
    """
    try:
        from sigstore import dsse, oidc, sign
        from sigstore.models import ClientTrustConfig
    except ImportError as error:
        raise UsageError(MISSING) from error
    content = json.loads(statement)
    named = [one for one in content["predicate"]["configuration"] if "content" not in one]
    content["subject"] = [{"name": one["name"], "digest": one["digest"]} for one in named]
    if not named or any("sha256" not in one["digest"] for one in named):
        raise UsageError("sign_identity must have results that are not redacted: a bundle names the files, got others.")
    payload = json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")
    try:
        raw = token or oidc.detect_credential()
        if raw is None:
            raise UsageError("sign_identity must be run where there is an identity, such as a CI job, got none.")
        if context is None:
            context = sign.SigningContext.from_trust_config(ClientTrustConfig.production())
        with context.signer(oidc.IdentityToken(raw)) as signer:
            return str(signer.sign_dsse(dsse.Statement(payload)).to_json()) + "\n"
    except UsageError:
        raise
    except Exception as error:  # of the network too
        said = " ".join(str(error).split())[: LIMITS.said] or type(error).__name__
        raise UsageError(f"sign_identity must be certified and logged, got {said}.") from error


def verified(
    path: str | os.PathLike[str], identity: str, issuer: str, trusted_root: str | os.PathLike[str] | None = None
) -> Verified:
    """The statement of a bundle, once it is found to be signed by an identity that an issuer vouches for.

    With a trusted root (a file of Sigstore's format) nothing is asked of the network; without, the root of the public
    instance of Sigstore is brought up to date.

    `UsageError` if sigstore is not installed, a file cannot be read, the bundle is not verified under this root,
    somebody else has signed it, or what is signed is no test result of in-toto.
    """
    try:
        from sigstore.models import Bundle, TrustedRoot
        from sigstore.verify import Verifier, policy
        from sigstore_models.trustroot.v1 import TrustedRoot as Root
    except ImportError as error:
        raise UsageError(MISSING) from error
    if not identity.strip() or not issuer.strip():
        raise UsageError(f"identity and issuer must name somebody, got {identity!r} and {issuer!r}.")
    where = repr(os.fspath(path))
    content = _bounded("verify", path)
    # Validity: whatever the library raises on what somebody wrote, the bundle is not verified.
    if trusted_root is None:
        with parsing("trusted_root", "there", "Sigstore's public one"):
            verifier = Verifier.production()
    else:
        root = _bounded("trusted_root", trusted_root)
        with parsing("trusted_root", "a trusted root of Sigstore", repr(os.fspath(trusted_root))):
            verifier = Verifier(trusted_root=TrustedRoot(Root.from_json(root)))
    with parsing("verify", f"a bundle that is signed by {identity!r}", where):
        who = policy.Identity(identity=identity, issuer=issuer)
        kind, payload = verifier.verify_dsse(Bundle.from_json(content), who)
    return result_of(kind, payload, f"by {identity}, for whom {issuer} vouches", where)


def _bounded(name: str, path: str | os.PathLike[str]) -> str:
    """The text of a file of JSON that is within the limits of files."""
    text = read_text(name, path)
    parsed_json(name, text, repr(os.fspath(path)))
    return text
