"""Statements signed by an identity: bundles of Sigstore that are made and verified without a network.

The test is the certificate authority, both logs and the issuer of identities; the library is the one that everybody
uses, and verifies under a root that has the test's own keys.
"""

import base64
import datetime
import functools
import hashlib
import json
import operator
import socket
import struct
import types

import pytest
from click.testing import CliRunner

from dpaudit import reports
from dpaudit.cli import main
from dpaudit.errors import UsageError
from dpaudit.reports import envelope
from dpaudit.reports.dossier import Dossier, Source

pytest.importorskip("sigstore", reason="needs the extra sigstore")

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier
from sigstore.models import TransparencyLogEntry, TrustedRoot
from sigstore.sign import SigningContext
from sigstore_models.trustroot.v1 import TrustedRoot as Root

SIGN = envelope.signed_by_identity
WHO, ISSUER = "https://github.com/some/body/.github/workflows/audit.yml@refs/heads/main", "https://issuer.example"
NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise OSError("no network in tests")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def key():
    return ec.generate_private_key(ec.SECP256R1())


def der(one):
    return one.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def mark(one):
    return hashlib.sha256(der(one)).digest()


def text(content):
    return base64.b64encode(content).decode("ascii")


class Authority:
    """Fulcio and its log of certificates: certifies the identity that it is told."""

    def __init__(self, who=WHO, issuer=ISSUER):
        self.key, self.log, self.who, self.issuer = key(), key(), who, issuer
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority")])
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        self.cert = (
            self._builder(name, name, self.key.public_key(), days=3_000)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        self.signing_cert = self

    def _builder(self, subject, issuer, public_key, days):
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public_key)
        since = NOW - datetime.timedelta(minutes=1)
        return builder.serial_number(7).not_valid_before(since).not_valid_after(NOW + datetime.timedelta(days=days))

    def post(self, request, token):
        """A certificate of the key of a request, as the client of Fulcio gives it."""
        del token
        own = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
        name = x509.UniformResourceIdentifier(self.who)
        base = (
            self._builder(x509.Name([]), self.cert.subject, request.public_key(), days=1)
            .add_extension(usage, critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(own, critical=False)
            .add_extension(x509.SubjectAlternativeName([name]), critical=True)
            .add_extension(
                x509.UnrecognizedExtension(ObjectIdentifier("1.3.6.1.4.1.57264.1.1"), self.issuer.encode()), False
            )
        )
        logged = base.sign(self.key, hashes.SHA256()).tbs_certificate_bytes
        at = int(NOW.timestamp()) * 1000
        entry = mark(self.key) + len(logged).to_bytes(3, "big") + logged
        signature = self.log.sign(struct.pack("!BBQH", 0, 0, at, 1) + entry + b"\0\0", ec.ECDSA(hashes.SHA256()))
        stamp = b"\0" + mark(self.log) + struct.pack("!QH", at, 0) + b"\4\3" + struct.pack("!H", len(signature))
        one = struct.pack("!H", len(stamp + signature)) + stamp + signature
        listed = struct.pack("!H", len(one)) + one
        octets = b"\4" + (bytes([len(listed)]) if len(listed) < 128 else b"\x81" + bytes([len(listed)])) + listed
        sct = x509.UnrecognizedExtension(ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2"), octets)
        cert = base.add_extension(sct, critical=False).sign(self.key, hashes.SHA256())
        return types.SimpleNamespace(cert=cert, chain=[self.cert])


class Log:
    """Rekor: a log of one entry."""

    def __init__(self):
        self.key = key()

    def _build_dsse_request(self, envelope, certificate):
        pem = certificate.public_bytes(Encoding.PEM)
        parts = {
            "envelopeHash": {"algorithm": "sha256", "value": hashlib.sha256(envelope.to_json().encode()).hexdigest()},
            "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(envelope._inner.payload).hexdigest()},
            "signatures": [{"signature": text(envelope.signature), "verifier": text(pem)}],
        }
        return {"apiVersion": "0.0.1", "kind": "dsse", "spec": parts}

    def create_entry(self, request):
        """The entry of a request, with the proof that it is in the log."""
        body = json.dumps(request, sort_keys=True, separators=(",", ":")).encode()
        root, at = hashlib.sha256(b"\0" + body).digest(), int(NOW.timestamp())
        note = f"a log - 1\n1\n{text(root)}\n"
        by = text(mark(self.key)[:4] + self.key.sign(note.encode(), ec.ECDSA(hashes.SHA256())))
        promised = {"body": text(body), "integratedTime": at, "logID": mark(self.key).hex(), "logIndex": 0}
        promise = json.dumps(promised, sort_keys=True, separators=(",", ":")).encode()
        proof = {
            "logIndex": 0, "treeSize": 1, "rootHash": root.hex(), "hashes": [],
            "checkpoint": f"{note}\n\u2014 a-log {by}\n",
        }  # fmt: skip
        shown = {
            "inclusionProof": proof,
            "signedEntryTimestamp": text(self.key.sign(promise, ec.ECDSA(hashes.SHA256()))),
        }
        return TransparencyLogEntry._from_v1_response({"entry": {**promised, "verification": shown}})


def root_of(authority, log):
    """The trusted root of an authority and a log, as JSON."""

    def instance(own):
        kind = {"rawBytes": text(der(own)), "keyDetails": "PKIX_ECDSA_P256_SHA_256"}
        valid = {"start": (NOW - datetime.timedelta(days=1)).isoformat().replace("+00:00", "Z")}
        return {
            "baseUrl": "https://log.example",
            "hashAlgorithm": "SHA2_256",
            "publicKey": {**kind, "validFor": valid},
            "logId": {"keyId": text(mark(own))},
        }

    valid = {"start": (NOW - datetime.timedelta(days=1)).isoformat().replace("+00:00", "Z")}
    chain = {"certificates": [{"rawBytes": text(authority.cert.public_bytes(Encoding.DER))}]}
    of_authority = {
        "subject": {"organization": "a", "commonName": "b"}, "uri": "https://ca.example", "certChain": chain,
        "validFor": valid,
    }  # fmt: skip
    return json.dumps({
        "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
        "tlogs": [instance(log.key)],
        "certificateAuthorities": [of_authority],
        "ctlogs": [instance(authority.log)],
        "timestampAuthorities": [],
    })  # fmt: skip


def token():
    at = int(datetime.datetime.now(datetime.UTC).timestamp())
    claims = {"iss": ISSUER, "aud": "sigstore", "sub": WHO, "iat": at - 5, "nbf": at - 5, "exp": at + 300}
    return jwt.encode(claims, "a key that nobody looks at, of enough bytes", algorithm="HS256")


@pytest.fixture
def instance(tmp_path):
    """An instance of Sigstore of the test's own: a signer, and the file of its root."""

    def make(who=WHO, issuer=ISSUER, name="root.json"):
        authority, log = Authority(who, issuer), Log()
        root = root_of(authority, log)
        (tmp_path / name).write_text(root)
        context = SigningContext(fulcio=authority, rekor=log, trusted_root=TrustedRoot(Root.from_json(root)))
        return (lambda statement: SIGN(statement, token(), context)), tmp_path / name

    return make


@pytest.fixture
def statement(synthetic):
    return reports.render(Dossier((Source("audit.json", "a" * 64, synthetic.make("single")),)), "in-toto")


def test_a_bundle_is_verified_under_its_root_and_says_who_signed(instance, statement, tmp_path):
    sign, root = instance()
    (tmp_path / "s.json").write_text(sign(statement))
    found = envelope.verified_by_identity(tmp_path / "s.json", WHO, ISSUER, root)
    assert found.result == json.loads(statement)["predicate"]["result"] == "FAILED"
    assert found.signer == f"by {WHO}, for whom {ISSUER} vouches"
    # What the tools of others look for: the saved results, by the digests of their files.
    assert found.statement["subject"] == [{"name": "audit.json", "digest": {"sha256": "a" * 64}}]
    assert found.statement["predicate"] == json.loads(statement)["predicate"]


def test_another_signer_issuer_or_root_does_not_verify(instance, statement, tmp_path):
    sign, root = instance()
    _, other = instance(name="other.json")
    (tmp_path / "s.json").write_text(sign(statement))
    for who, issuer, own in ((WHO + "x", ISSUER, root), (WHO, ISSUER + "x", root), (WHO, ISSUER, other)):
        with pytest.raises(UsageError, match="verify must be a bundle that is signed by"):
            envelope.verified_by_identity(tmp_path / "s.json", who, issuer, own)
    for who, issuer in (("", ISSUER), (WHO, " ")):
        with pytest.raises(UsageError, match="identity and issuer must name somebody"):
            envelope.verified_by_identity(tmp_path / "s.json", who, issuer, root)


ENTRY = ("verificationMaterial", "tlogEntries", 0)
CHANGES = {  # a place in the bundle, and what stands there instead; without it where that is None
    "kind": (("dsseEnvelope", "payloadType"), "application/json"),
    "signature": (("dsseEnvelope", "signatures"), []),
    "statement": (("dsseEnvelope", "payload"), lambda old: text(base64.b64decode(old).replace(b"FAILED", b"PASSED"))),
    "no entry": (ENTRY[:2], []),
    "time": ((*ENTRY, "integratedTime"), lambda old: str(int(old) + 1)),
    "proof": ((*ENTRY, "inclusionProof", "rootHash"), text(b"\0" * 32)),
    "no promise": ((*ENTRY, "inclusionPromise"), None),
    "certificate": (("verificationMaterial", "certificate", "rawBytes"), text(b"\0" * 100)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_in_a_bundle_does_not_verify(instance, statement, tmp_path, change):
    sign, root = instance()
    record, ((*places, last), new) = json.loads(sign(statement)), CHANGES[change]
    inner = functools.reduce(operator.getitem, places, record)
    inner[last] = new(inner[last]) if callable(new) else new
    if new is None:
        del inner[last]
    (tmp_path / "s.json").write_text(json.dumps(record))
    with pytest.raises(UsageError, match="verify must"):
        envelope.verified_by_identity(tmp_path / "s.json", WHO, ISSUER, root)


@pytest.mark.parametrize("content", ["", "{}", "[]", "[" * 100_000, '{"mediaType": 1e999}', "null", '"a"', "\x00"])
def test_what_is_no_bundle_and_no_root_is_a_usage_error(instance, statement, tmp_path, content):
    sign, root = instance()
    (tmp_path / "bad").write_text(content)
    (tmp_path / "s.json").write_text(sign(statement))
    with pytest.raises(UsageError, match="verify must"):
        envelope.verified_by_identity(tmp_path / "bad", WHO, ISSUER, root)
    with pytest.raises(UsageError, match="trusted_root must"):
        envelope.verified_by_identity(tmp_path / "s.json", WHO, ISSUER, tmp_path / "bad")


def test_a_good_bundle_on_something_else_is_refused(instance, statement, tmp_path):
    sign, root = instance()
    other = json.loads(statement)
    other["predicateType"] = "https://example.org/other"
    (tmp_path / "s.json").write_text(sign(json.dumps(other)))
    with pytest.raises(UsageError, match="verify must hold a test result of in-toto"):
        envelope.verified_by_identity(tmp_path / "s.json", WHO, ISSUER, root)


def test_what_is_redacted_or_has_no_identity_is_not_signed(instance, statement, monkeypatch):
    sign, _ = instance()
    keyed = json.loads(statement)
    for entry in keyed["predicate"]["configuration"]:
        if "content" not in entry:
            entry["digest"] = {"dpauditKeyedSha256": "a" * 64}
    with pytest.raises(UsageError, match="sign_identity must have results that are not redacted"):
        sign(json.dumps(keyed))
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "CIRCLECI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sigstore.oidc.detect_credential", lambda: None)
    with pytest.raises(UsageError, match="sign_identity must be run where there is an identity"):
        envelope.signed_by_identity(statement)
    with pytest.raises(UsageError, match="sign_identity must be certified and logged"):
        envelope.signed_by_identity(statement, "no token")


def test_the_command_signs_by_an_identity_and_verifies_it(instance, synthetic, project, monkeypatch):
    sign, root = instance()
    monkeypatch.setattr(envelope, "signed_by_identity", sign)
    synthetic.make("single").save("audit.json")

    def run(*arguments):
        return CliRunner().invoke(main, ["report", *arguments])

    made = run("audit.json", "--profile", "compliance", "--report", "md", "--out", "o", "--sign-identity")
    assert made.stdout.split() == ["o/compliance.md", "o/compliance.sigstore.json"]
    verify = ["--verify", "o/compliance.sigstore.json"]
    who = ["--identity", WHO, "--issuer", ISSUER, "--trusted-root", str(root)]
    shown = run(*verify, *who, "audit.json")
    assert shown.exit_code == 1 and shown.output.startswith("FAILED: ")
    assert f"So says a statement that is signed by {WHO}, for whom {ISSUER} vouches." in shown.output.splitlines()
    assert "All 1 of these results are named in it." in shown.output
    for options in (who[:2], who[2:4], who[4:], [*who, "--key", "k.pem"], ["--key", "k.pem", *who[4:]]):
        assert run(*verify, *options).exit_code == 2
    assert "identity must be given with --verify" in run("audit.json", *who[:2]).output
    assert "sign must be given with --profile compliance" in run("audit.json", "--sign-identity").output


def test_without_sigstore_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "sigstore.models", None)
    for call in (lambda: envelope.signed_by_identity("{}"), lambda: envelope.verified_by_identity(tmp_path, "a", "b")):
        with pytest.raises(UsageError, match=r"Use pip install 'dpaudit\[sigstore\]'"):
            call()
