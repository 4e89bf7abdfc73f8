"""`dpaudit evidence`."""

from __future__ import annotations

from typing import Any

import click

from dpaudit.cli.group import command, main
from dpaudit.cli.outputs import output_console
from dpaudit.errors import UsageError

MIN_DIGITS = 4  # of an id or a fingerprint that names a subject


@main.group("evidence")
def evidence_group() -> None:
    """What has accumulated in a store: list it, explain it, export, merge or forget it.

    `dpaudit audit --store FILE` and `dpaudit scores --store FILE` add to it.
    """


_with_store = click.option("--store", "path", required=True, metavar="FILE", help="The store of evidence.")


@command("list", evidence_group)
@_with_store
def list_command(_: click.Context, given: Any) -> None:
    """List the mechanisms and claims that have evidence, one row each."""
    from dpaudit.reports import evidence, terminal

    output_console().print(terminal.show(evidence.list_blocks(_document(given.path))))


@command("explain", evidence_group)
@click.argument("subject", required=False)
@_with_store
def explain_command(_: click.Context, given: Any) -> None:
    """Explain what the evidence says, and with which certainty, pair by pair and session by session.

    SUBJECT is an id as `list` shows it, a fingerprint, a target or a name; all by default.
    """
    from dpaudit.reports import evidence, terminal

    console = output_console()
    for k, one in enumerate(_chosen(_document(given.path), [given.subject] if given.subject is not None else [])):
        if k:
            console.print()
        console.print(terminal.show(evidence.explanation(one)))


@command("export", evidence_group)
@click.argument("subject", required=False)
@click.option("--out", metavar="FILE", help="Where to write; the terminal by default.")
@_with_store
def export_command(_: click.Context, given: Any) -> None:
    """Export what `explain` says as JSON, of schema dpaudit.evidence/1."""
    import json

    from dpaudit.results.saving import write_whole

    document = _document(given.path)
    document["subjects"] = _chosen(document, [given.subject] if given.subject is not None else [])
    text = json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    if given.out is None:
        click.echo(text, nl=False)
        return
    write_whole(given.out, text)
    click.echo(f"Written: {given.out}")


@command("merge", evidence_group)
@click.argument("others", nargs=-1, required=True, metavar="OTHER...")
@_with_store
def merge_command(_: click.Context, given: Any) -> None:
    """Take the evidence of OTHER stores into the store, which is made if it is not there.

    Where both have bet on a pair, their wealth multiplies. A store that has a stream in common is refused as a whole:
    its draws would count twice. Take over all stores that there are, or choose them before you look: the error rate is
    not that of a selection.
    """
    from dpaudit.reports.wording import plural
    from dpaudit.running.store import Store
    from dpaudit.scores import ledger

    with Store.at(given.path) as store:
        for place in given.others:
            with Store.at(place, create=False) as other:
                ledger.merge(store, other, writes=False)  # refuse before anything is taken over
                sessions, pairs = store.merge(other)
                sessions += ledger.merge(store, other)
            click.echo(f"{place}: {plural(sessions, 'session')}, {plural(pairs, 'pair')}")


@command("forget", evidence_group)
@click.argument("subjects", nargs=-1, metavar="SUBJECT...")
@click.option("--changed", multiple=True, metavar="TARGET", help="Forget what was found of earlier forms of TARGET.")
@_with_store
def forget_command(_: click.Context, given: Any) -> None:
    """Forget the evidence of a SUBJECT, or of the earlier forms of a TARGET whose fingerprint has changed.

    Its sessions stay on record, and their streams are never drawn again. What comes next has an error rate of its own.
    """
    from dpaudit.reports.evidence import store_document
    from dpaudit.reports.wording import clean, plural
    from dpaudit.running.store import Store
    from dpaudit.scores import ledger
    from dpaudit.subjects.targets import resolve_target

    if not given.subjects and not given.changed:
        raise UsageError("subject must be named, or a target by --changed, got neither.")
    current = {target: resolve_target(target).fingerprint for target in given.changed}
    with Store.at(given.path, create=False) as store:
        document = store_document(store)
        found = _chosen(document, given.subjects) if given.subjects else []
        found += [
            one
            for one in document["subjects"]
            if one["target"] in current and one["fingerprint"] != current[one["target"]] and one not in found
        ]
        store.forget([one["id"] for one in found])
        ledger.forget(store, [one["id"] for one in found])
    for one in found:
        about = f"{clean(one['name'])}, {clean(one['claim'])}"
        click.echo(f"Forgotten: {one['id'][:12]} {about}, {plural(len(one['pairs']), 'pair')}")
    if not found:
        click.echo("Nothing to forget.")


def _document(path: str) -> dict[str, Any]:
    from dpaudit.reports.evidence import store_document
    from dpaudit.running.store import Store

    with Store.at(path, create=False) as store:
        return store_document(store)


def _chosen(document: dict[str, Any], names: list[str] | tuple[str, ...]) -> list[dict[str, Any]]:
    """The subjects that the names mean; all of them where there is no name."""
    subjects: list[dict[str, Any]] = document["subjects"]
    if not names:
        return subjects
    found: list[dict[str, Any]] = []
    for name in names:
        meant = [one for one in subjects if name in (one["target"], one["name"])]
        if not meant and len(name) >= MIN_DIGITS:
            meant = [one for one in subjects if one["id"].startswith(name) or one["fingerprint"].startswith(name)]
        if not meant:
            known = ", ".join(one["id"][:12] for one in subjects[:5]) or "none"
            raise UsageError(f"subject must be one that the store has ({known}), got {name!r}.")
        found += [one for one in meant if one not in found]
    return found
