"""An in-toto statement signed as a DSSE envelope (v1), and how such a file is verified. Needs the extra `sign`.

Keys are PEM files: Ed25519, or ECDSA on P-256 (with SHA-256). What is signed is the pre-authentication encoding of the
specification (secure-systems-lab/dsse, version 1): the type of the payload and the payload, each with its length, so
that neither can stand for the other. The statement names the saved results by their digests, so that a verified file
also tells whether results at hand are those that were reported.

In the place of a key an identity may sign, for ten minutes: a bundle of Sigstore (extra `sigstore`). An authority
(Fulcio) certifies who the signer is by a token of an OpenID issuer, and a log (Rekor) has the signature; both are in
the bundle, so that it is verified without them, under a trusted root. The subjects of such a statement are the saved
results, by their SHA-256, where the tools of Sigstore and of GitHub look for a file's digest; mechanisms and their
fingerprints are in its configuration.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.files import LIMITS, parsed_json, parsing, read_bytes, read_text
from dpaudit.reports.words import plural

PAYLOAD_TYPE = "application/vnd.in-toto+json"
MISSING = "sign must have cryptography installed, got none. Use pip install 'dpaudit[sign]'."
NO_SIGSTORE = "identity must have sigstore installed, got none. Use pip install 'dpaudit[sigstore]'."


@dataclasses.dataclass(frozen=True)
class Verified:
    """A statement whose signature is good: its result, subjects, and the digests of the results that it names.

    `signer` says with what or by whom it was signed.
    """

    statement: dict[str, Any]
    signer: str

    @property
    def result(self) -> str:
        """PASSED, WARNED or FAILED, in the words of the predicate."""
        result = str(self.statement["predicate"]["result"])
        if result not in ("PASSED", "WARNED", "FAILED"):
            raise ValueError("a result must be one of the predicate's words")
        return result

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of the saved results, by their names; those of redacted reports are keyed and not among them."""
        entries = self.statement["predicate"]["configuration"]
        return {
            str(e["name"]): str(e["digest"]["sha256"])
            for e in entries
            if "content" not in e and "sha256" in e["digest"]
        }

    @property
    def sentences(self) -> list[str]:
        """Say what was tested and when, one sentence each: mechanisms, claims, pairs, time."""
        from dpaudit.reports.intoto import SIGNED_ON

        found = []
        for entry in self.statement["predicate"]["configuration"]:
            if "content" in entry:
                content = base64.b64decode(entry["content"], validate=True)
                if hashlib.sha256(content).hexdigest() != entry["digest"]["sha256"]:
                    raise ValueError("settings must have the digest that is stated")
                found += _tested(json.loads(content))
        when = self.statement["predicate"].get(SIGNED_ON)
        return [*dict.fromkeys(found), f"Signed on {when}." if when else "It does not say when it was signed."]


def _tested(settings: dict[str, Any]) -> list[str]:
    """A sentence for each mechanism, for the claim and for the pairs of a run."""
    said = []
    for one in settings.get("subjects", ()):
        name = one.get("target") or one.get("name") or "?"
        said.append(f"Mechanism {name}, whose code has the fingerprint {one.get('fingerprint') or 'unknown'}.")
    if settings.get("claim"):
        said.append(f"Claim {settings['claim']}.")
    if pairs := settings.get("pairs"):
        first = ", ".join(map(str, pairs["first"]))
        said.append(f"{plural(pairs['count'], 'pair')}: {first}{', ...' * (pairs['count'] > len(pairs['first']))}.")
    return said


def encoded(payload_type: str, payload: bytes) -> bytes:
    """The pre-authentication encoding, which is what is signed; the example is that of the specification, version 1.

    Examples
    --------
    >>> encoded("http://example.com/HelloWorld", b"hello world")
    b'DSSEv1 29 http://example.com/HelloWorld 11 hello world'
    """
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def signed(statement: str, key_path: str | os.PathLike[str]) -> str:
    """The envelope of a statement, signed with the unencrypted private key of a PEM file, as JSON with a line end.

    `UsageError` if cryptography is not installed, or the file is no such key.
    """
    payload = statement.encode("utf-8", "backslashreplace")
    key = _key("sign", key_path, "private")
    signature = {
        "keyid": key_id(key.public_key()),
        "sig": _base64(key.sign(encoded(PAYLOAD_TYPE, payload), *_scheme(key))),
    }
    envelope = {"payload": _base64(payload), "payloadType": PAYLOAD_TYPE, "signatures": [signature]}
    return json.dumps(envelope, indent=1) + "\n"


def verified(path: str | os.PathLike[str], key_path: str | os.PathLike[str]) -> Verified:
    """The statement of an envelope, once a signature of it is found good under a public key.

    `UsageError` if a file cannot be read, the envelope is none, no signature of it is good under this key, or what is
    signed is no test result of in-toto.
    """
    key = _key("key", key_path, "public")
    file = Path(path)
    content = read_bytes("verify", file)
    try:
        envelope = parsed_json("verify", content, repr(str(file)))
        payload = base64.b64decode(envelope["payload"], validate=True)
        kind = str(envelope["payloadType"])
        signatures = [base64.b64decode(one["sig"], validate=True) for one in envelope["signatures"]]
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
        raise UsageError(f"verify must be a DSSE envelope, got {str(file)!r} ({type(error).__name__}).") from error
    if not any(_is_good(key, signature, encoded(kind, payload)) for signature in signatures):
        raise UsageError(
            f"verify must be a file with a good signature under this key ({key_id(key)[:16]}), got {str(file)!r}: it "
            "was changed, or signed with another key."
        )
    return verified_result(kind, payload, f"with the key {key_id(key)[:16]}", repr(str(file)))


def verified_result(kind: str, payload: bytes, signer: str, where: str) -> Verified:
    """The test result that was signed, once its signature is good; UsageError where it is something else."""
    from dpaudit.reports.intoto import PREDICATE, STATEMENT

    try:
        statement = parsed_json("verify", payload, where)
        is_ours = kind == PAYLOAD_TYPE and statement["_type"] == STATEMENT and statement["predicateType"] == PREDICATE
        found = Verified(statement, signer)
        _ = (found.result, found.digests, found.sentences)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"verify must hold a test result of in-toto, got {where}.") from error
    if not is_ours:
        raise UsageError(f"verify must hold a test result of in-toto, got {statement.get('predicateType')!r}.")
    return found


def unlike(found: Verified, paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files among these whose digest the statement does not name."""
    known = set(found.digests.values())
    return [str(path) for path in paths if hashlib.sha256(read_bytes("result", path)).hexdigest() not in known]


def key_id(public_key: Any) -> str:
    """SHA-256 of a public key (its SubjectPublicKeyInfo in DER), in hexadecimal."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _key(name: str, path: str | os.PathLike[str], kind: str) -> Any:
    """The "private" or "public" key of a PEM file, if it is of a kind that we sign with."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise UsageError(MISSING) from error
    content, where = read_bytes(name, Path(path)), repr(os.fspath(path))
    try:
        private = serialization.load_pem_private_key(content, password=None) if kind == "private" else None
        public: Any = private.public_key() if private is not None else serialization.load_pem_public_key(content)
    except (ValueError, TypeError) as error:  # the latter: it is encrypted
        wanted = "an unencrypted private key" if kind == "private" else "a public key"
        raise UsageError(f"{name} must be {wanted} in PEM, got {where}.") from error
    is_curve = isinstance(public, EllipticCurvePublicKey) and isinstance(public.curve, SECP256R1)
    if not (is_curve or isinstance(public, Ed25519PublicKey)):
        raise UsageError(f"{name} must be an Ed25519 or ECDSA P-256 key, got another kind at {where}.")
    return private or public


def _scheme(key: Any) -> tuple[Any, ...]:
    """Say what a key signs and verifies with, beside the content: a curve with SHA-256."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.hashes import SHA256

    return (ECDSA(SHA256()),) if hasattr(key, "curve") else ()


def _is_good(key: Any, signature: bytes, content: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, content, *_scheme(key))
    except InvalidSignature:
        return False
    return True


def signed_by_identity(statement: str, token: Any = None, context: Any = None) -> str:
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
        raise UsageError(NO_SIGSTORE) from error
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


def verified_by_identity(
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
        raise UsageError(NO_SIGSTORE) from error
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
    return verified_result(kind, payload, f"by {identity}, for whom {issuer} vouches", where)


def _bounded(name: str, path: str | os.PathLike[str]) -> str:
    """The text of a file of JSON that is within the limits of files."""
    text = read_text(name, path)
    parsed_json(name, text, repr(os.fspath(path)))
    return text
