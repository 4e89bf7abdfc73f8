"""`dpaudit judge`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpaudit.cli.group import command, note, plain, shared
from dpaudit.cli.outputs import output_console, subject_output, written_or_reported
from dpaudit.cli.searching import read_domain, read_example, read_list
from dpaudit.cli.subjects import check_complete, given_pairs
from dpaudit.errors import UsageError

STAND_IN = "judgement.json"


@command("judge")
@click.argument("target", metavar="TARGET")
@shared("claim")
@click.option(
    "--domain",
    metavar="SPEC",
    help="The inputs: a domain as JSON, a JSON file, or module:attribute, as for `dpaudit audit --search`.",
)
@click.option(
    "--examples",
    metavar="FILE|TARGET",
    help="Inputs like which others are: a JSON list of datasets, a .csv or .parquet table, or module:attribute, one "
    "dataset or table.",
)
@click.option(
    "--pairs", help="The pairs to judge, as for `dpaudit audit`; or a saved judgement, for the pair that it speaks of."
)
@click.option("--seconds", type=float, default=60.0, show_default=True, help="About how long it may take.")
@shared("seed")
@click.option("--out", type=click.Path(dir_okay=False), help="Save the judgement to this file, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print the judgement as JSON.")
def judge_command(ctx: click.Context, given: Any) -> None:
    """Judge whether TARGET keeps its claim, in one answer.

    Looks for the inputs on which TARGET is most sensitive, proves or disproves the claim where it can, and audits it
    where it cannot. Without --domain, --examples and --pairs the inputs are TARGET's own pairs, or guessed from its
    default value or type hint; the answer says so. Exit status 0 for "proved" and "not refuted", 1 for "refuted", 3 for
    an error, 5 for "inconclusive".
    """
    from rich.text import Text

    from dpaudit.judgements.judging import judge
    from dpaudit.reports import wording
    from dpaudit.results.saving import check_file
    from dpaudit.subjects.targets import resolve_target

    stated = {name: value for name in ("domain", "examples", "pairs") if (value := getattr(given, name))}
    if len(stated) > 1:
        raise UsageError(f"inputs must be given in one way, got --{' and --'.join(stated)}.")
    out = given.out
    if out is not None:
        check_file("out", out)
    with subject_output():
        inputs: dict[str, Any] = {}
        if given.domain is not None:
            inputs["domain"] = read_domain(given.domain, "domain")
        if given.examples is not None:
            is_list = given.examples.lower().endswith(".json")
            inputs["examples"] = read_list(given.examples) if is_list else [read_example(given.examples)]
        if given.pairs is not None:
            inputs["pairs"] = _pairs(given.pairs)
        subject = resolve_target(given.target)
        check_complete(subject, given.claim, ())
        result = judge(subject, given.claim, seconds=given.seconds, seed=given.seed, **inputs)
    write = (lambda: [result.save(out)]) if out is not None else list
    written, status = written_or_reported(ctx, write, result.exit_status)
    if given.as_json:
        click.echo(result.to_text(), nl=False)
    else:
        console = output_console()
        for line in result.text(out or STAND_IN).split("\n"):
            console.print(Text(wording.clean(line, 1_200)), soft_wrap=True)
        if out is None and STAND_IN in result.replay():
            console.print(Text(f"(Save it with --out {STAND_IN}, which holds the inputs of the pair.)"))
        for path in written:
            note(f"Written: {plain(str(path))}", err=False)
    ctx.exit(status)


def _pairs(text: str) -> Any:
    """The pairs of a text, or the one of a saved judgement."""
    from dpaudit.files import read_json
    from dpaudit.judgements.judgement import SCHEMA, load_judgement

    if text.strip().endswith(".json") and Path(text.strip()).is_file():
        try:
            record = read_json("pairs", text.strip())
        except UsageError:
            record = None
        if isinstance(record, dict) and record.get("schema") == SCHEMA:
            pair = load_judgement(text.strip()).pair
            if pair is None:
                said = f"pairs must be in the judgement, got one that holds no pair of inputs ({text!r})."
                raise UsageError(f"{said} Give the pairs themselves, or leave --pairs out to have one looked for.")
            return [pair]
    return given_pairs(text)
