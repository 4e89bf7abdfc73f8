"""`dpaudit report`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpaudit.cli.group import command, list_option, note, plain
from dpaudit.cli.outputs import DEFAULT_OUT, chosen_outputs, output_console, places, write_reports
from dpaudit.config import Config, read_config
from dpaudit.errors import UsageError

if TYPE_CHECKING:
    from dpaudit.reports.deployment import Deployment
    from dpaudit.reports.document import Document
    from dpaudit.reports.dossier import Dossier

REPORT_FORMATS = ("html", "md")
SIGNED = {  # what a signed statement says, and the exit status of --verify: that of an audit with this verdict
    "FAILED": ("a promise is broken, a check failed, or a run broke", 1),
    "WARNED": ("no broken promise found; some of it is not settled, is a known failure, or was found beside", 5),
    "PASSED": ("no broken promise found", 0),
}
DIFFERENCE_FORMATS = ("html", "md", "pdf")


@command("report")
@click.argument("results", nargs=-1, metavar="RESULT...")
@click.option(
    "--profile",
    type=click.Choice(["plain", "compliance"]),
    default="plain",
    show_default=True,
    help="compliance: one report of all RESULTs, with a page for non-experts and the items of an evaluation.",
)
@click.option("--deployment", help="TOML file with what you declare.  [default: tool.dpaudit.deployment]")
@click.option(
    "--sign-off", "sign_off", help="TOML file with somebody's decision: name, role, date, decision, conditions."
)
@click.option("--redact", is_flag=True, help="Keep records out: inputs get names under a key that is not kept.")
@click.option("--diff", "compare", is_flag=True, help="Say what changed from the first RESULT to the second.")
@click.option(
    "--history", metavar="DIR|STORE", help="Say what changed over the releases of a folder, or sessions of a store."
)
@click.option(
    "--sign", "sign_key", metavar="KEY", help="Private key (PEM): write the in-toto statement, signed (DSSE)."
)
@click.option(
    "--verify", "envelope", metavar="FILE", help="Verify a signed statement with --key, and that it names the RESULTs."
)
@click.option("--key", "public_key", help="Public key (PEM) for --verify.")
@click.option(
    "--sign-identity", is_flag=True, help="Write the statement as a Sigstore bundle, signed by this CI job's identity."
)
@click.option(
    "--identity", metavar="WHO", help="Who must have signed the bundle of --verify: an address or a workflow."
)
@click.option("--issuer", metavar="URL", help="Who must vouch for --identity.")
@click.option("--trusted-root", metavar="FILE", help="Sigstore's root for --identity.  [default: the public one]")
@list_option("--report", help=f"Formats to write.  [default: {','.join(REPORT_FORMATS)}]")
@click.option("--out", help=f"Folder for the reports.  [default: {DEFAULT_OUT}]")
def report_command(ctx: click.Context, given: Any) -> None:
    """Render saved RESULTs as reports: audits, checks, certificates, scores, a session's folder, a store.

    Formats: html, md, json, junit (.junit.xml), sarif, pdf (needs the extra `pdf`), in-toto (.intoto.json), registry
    (a draft for the public registry of deployments), label and label-svg (one page), oscal (NIST OSCAL assessment
    results). Those that say when they were written take the date that SOURCE_DATE_EPOCH states.
    """
    results, compliant = given.results, given.profile == "compliance"
    if given.envelope is not None:
        who = (given.identity, given.issuer, given.trusted_root)
        ctx.exit(_verify(given.envelope, given.public_key, who, results))
    for name in ("public_key", "identity", "issuer", "trusted_root"):
        if (value := getattr(given, name)) is not None:
            raise UsageError(f"{name.removeprefix('public_')} must be given with --verify, got {value!r} without.")
    if given.history is not None:
        from dpaudit.reports.history import document, read_history

        if results:
            raise UsageError(f"history must stand without results, got {results[0]!r} too.")
        title = "a redacted place" if given.redact else given.history
        _written(document(read_history(given.history, given.redact), title), "history", given)
        return
    if not results:
        raise click.UsageError("Missing argument 'RESULT...'.")
    from dpaudit.reports.difference import difference
    from dpaudit.reports.dossier import Dossier, Judged, kind_of, subject_of
    from dpaudit.reports.reading import read_dossier
    from dpaudit.reports.redaction import redacted
    from dpaudit.reports.sign_off import read_sign_off
    from dpaudit.results.saving import write_whole

    config = read_config()
    for name in ("deployment", "sign_off"):
        if getattr(given, name) is not None and not compliant:
            raise UsageError(f"{name} must be given with --profile compliance, got --profile {given.profile}.")
    declared = _deployment(config, given.deployment) if compliant else None
    dossier = read_dossier(results, declared, may_repeat=given.compare)
    # Read on the results as they were saved.
    signed = read_sign_off(given.sign_off, dossier) if given.sign_off is not None else None
    if (given.sign_key is not None or given.sign_identity) and not compliant:
        raise UsageError(f"sign must be given with --profile compliance, got --profile {given.profile}.")
    if given.redact:
        dossier = redacted(dossier)
    dossier = dataclasses.replace(dossier, sign_off=signed)
    if given.compare:
        if len(dossier.sources) != 2:
            raise UsageError(f"diff must have two results, got {len(dossier.sources)}.")
        _written(difference(*dossier.sources), "difference", given)
        return
    chosen, folder = chosen_outputs(config, given.report, given.out, REPORT_FORMATS)
    if compliant:
        signed_texts = _signed(dossier, given.sign_key, given.sign_identity)  # before anything is written
        for path in write_reports(dossier, folder, chosen, "compliance", given.profile):
            click.echo(path)
        for name, text in signed_texts.items():
            write_whole(folder / name, text)
            click.echo(folder / name)
        return
    shown: list[tuple[Any, str, str, Any]] = []  # what is written, its stem, where it is saved, and its subject
    for source in dossier.sources:
        kind, alone = kind_of(source.result), Dossier((source,), is_redacted=dossier.is_redacted)
        # An audit has a page of its own, which says how to replay; what is redacted cannot be replayed.
        written = source.result if kind == "audit" and not given.redact else alone
        described = getattr(source.result, "subject", None) or source.result.to_dict()["mechanisms"][0]
        shown.append((written, kind, source.name, described))
    for one in dossier.attachments:
        if not isinstance(one, Judged):
            note(f"Note: {plain(one.name)} ({one.kind}) is shown with --profile compliance alone.")
        else:
            alone = Dossier((), is_redacted=dossier.is_redacted, attachments=(one,))
            shown.append((alone, one.kind, one.name, one.subject))
    where = places(folder, [subject_of(subject) for *_, subject in shown])
    in_place = list(zip(shown, where, strict=True))
    for (result, stem, name, _), place in in_place[len(dossier.sources) :] + in_place[: len(dossier.sources)]:
        for path in write_reports(result, place, chosen, stem, saved=name):
            click.echo(path)


def _signed(dossier: Dossier, key: str | None, by_identity: bool) -> dict[str, str]:
    """The in-toto statement with its time, signed with a key and by an identity, as asked; by the names of files."""
    from dpaudit.reports import envelope
    from dpaudit.reports.intoto import SIGNED_ON, render
    from dpaudit.reports.wording import iso_text
    from dpaudit.results.saving import json_text

    if key is None and not by_identity:
        return {}
    content = json.loads(render(dossier))
    content["predicate"][SIGNED_ON] = iso_text()
    statement = json_text(content)
    found = {} if key is None else {"compliance.intoto.dsse.json": envelope.signed(statement, key)}
    return {**found, "compliance.sigstore.json": envelope.signed_by_identity(statement)} if by_identity else found


def _verify(
    envelope: str, public_key: str | None, identity: tuple[str | None, str | None, str | None], results: tuple[str, ...]
) -> int:
    """Say what a signed statement says, once its signature is good and it names all results that were given.

    Its exit status: that of the result, since a good signature on a failure is no success.
    """
    from dpaudit.reports.envelope import unlike, verified, verified_by_identity

    who, issuer, root = identity
    if public_key is None and who is None:
        raise UsageError("key must be given with --verify, got none: a public key (PEM), or --identity and --issuer.")
    if (who is None) != (issuer is None) or (public_key is not None) == (who is not None) or (root and who is None):
        raise UsageError("verify must have --key, or --identity with --issuer and perhaps --trusted-root, got others.")
    if public_key is not None:
        found = verified(envelope, public_key)
    else:
        found = verified_by_identity(envelope, who or "", issuer or "", root)
    other = unlike(found, results)
    if other:
        raise UsageError(f"results must be those that the statement names, got {', '.join(map(repr, other))}.")
    meaning, status = SIGNED[found.result]
    click.echo(f"{found.result}: {meaning}.")
    click.echo(plain(f"So says a statement that is signed {found.signer}."))
    for sentence in found.sentences:
        click.echo(plain(sentence))
    for name, digest in found.digests.items():
        click.echo(f"  sha256 {plain(digest)}  {plain(name)}")
    if results:
        click.echo(f"All {len(results)} of these results are named in it.")
    return status


def _deployment(config: Config, path: str | None) -> Deployment | None:
    from dpaudit.reports.deployment import deployment_of, read_deployment

    if path is not None:
        return read_deployment(path)
    if config.path is None or config.deployment is None:
        return None
    return deployment_of(config.deployment, config.path, "[tool.dpaudit.deployment]")


def _written(document: Document, stem: str, given: Any) -> None:
    """Print a document of its own, and write it where a format or a folder is named."""
    from dpaudit.reports import terminal

    chosen: tuple[str, ...] = ()
    folder = Path()
    if given.report is not None or given.out is not None:
        chosen, folder = chosen_outputs(read_config(), given.report, given.out, REPORT_FORMATS)
    unknown = next((name for name in chosen if name not in DIFFERENCE_FORMATS), None)
    if unknown is not None:
        word = "diff" if stem == "difference" else stem
        raise UsageError(
            f"report must name formats among {', '.join(DIFFERENCE_FORMATS)} for a {word}, got {unknown!r}."
        )
    output_console().print(terminal.whole(document))
    for path in write_reports(document, folder, chosen, stem):
        note(f"Written: {path}")
