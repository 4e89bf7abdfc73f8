"""`dpaudit plan`."""

from __future__ import annotations

from typing import Any

import click

from dpaudit.arguments import MODES
from dpaudit.cli.group import main, with_debug, with_quiet
from dpaudit.cli.outputs import output_console, subject_output
from dpaudit.cli.subjects import check_complete
from dpaudit.config import read_config
from dpaudit.errors import UsageError


@main.command("plan")
@click.argument("target", metavar="[TARGET]", required=False)
@click.option("--claim", help="The promise, as for `dpaudit audit`.")
@click.option("--pairs", help="Pairs of inputs, as for `dpaudit audit`.")
@click.option("--samples", type=int, help="Of the audit that is planned.  [default: 100000]")
@click.option("--mode", type=click.Choice(MODES), help="Of that audit.  [default: as of an audit]")
@click.option("--confidence", type=float, help="Of that audit.  [default: 0.95]")
@click.option("--over", default="10%", show_default=True, help="The excess over the claim to be found: 10% or 0.1.")
@click.option("--power", default="90%", show_default=True, help="The probability with which it is to be found.")
@click.option(
    "--event-mass",
    default="0.5,0.1,0.01",
    show_default=True,
    help="Masses of the event that the excess may sit in, with commas.",
)
@click.option(
    "--pilot", type=int, default=0, help="Runs on each input to estimate an event mass from.  [default: none]"
)
@click.option("--seconds", type=float, help="Plan for as many of the samples as can be had in this time.")
@click.option("--seed", type=int, help="Of the pilot; one is drawn and printed by default.")
@click.option(
    "--design",
    type=click.Choice(["one-run"]),
    help="Instead of TARGET: how many canaries one training run needs, for `dpaudit scores`.",
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@with_quiet
@with_debug
@click.pass_context
def plan_command(
    ctx: click.Context,
    /,
    target: str | None,
    claim: str | None,
    pairs: str | None,
    over: str,
    power: str,
    event_mass: str,
    pilot: int,
    seconds: float | None,
    design: str | None,
    form: str,
    **options: Any,
) -> None:
    """Say what an audit would cost and could find, before it runs.

    For several masses of the event that an excess may sit in: the smallest loss that the audit finds, and how many
    samples the excess needs. TARGET is run only to see how long a run takes. Exit status 0.
    """
    from dpaudit.audits.planning import plan
    from dpaudit.privacy.parsing import as_claim
    from dpaudit.reports import terminal
    from dpaudit.reports.plan import excess, plan_blocks, share, shares
    from dpaudit.subjects.targets import resolve_pairs, resolve_target

    config = read_config()
    promise = as_claim(claim)
    if design is not None:
        from dpaudit.reports import scores
        from dpaudit.scores.planning import plan_one_run

        if target is not None or promise is None:
            given = "no claim" if promise is None else f"TARGET {target!r}"
            raise UsageError(f"design must stand with --claim and without TARGET, got {design!r} with {given}.")
        confidence = options["confidence"] if options["confidence"] is not None else 0.95
        run = plan_one_run(promise, confidence)
        if form == "json":
            click.echo(run.to_text(), nl=False)
        else:
            output_console().print(terminal.show(scores.plan_blocks(run)))
        return
    if target is None:
        raise UsageError("target must be given, got none. Name a mechanism, for example mymodule.py:release.")
    with subject_output():
        listed = resolve_pairs(pairs) if pairs is not None else None
        subject = resolve_target(target)
        check_complete(subject, promise, listed)
    sought: dict[str, Any] = {"over": excess(over), "power": share("power", power), "seconds": seconds}
    known = config.audit_options(options)
    stated = {name: known[name] for name in ("samples", "mode", "confidence", "seed") if name in known}
    try:
        masses = shares(event_mass)
        with subject_output():
            planned = plan(subject, promise, listed, event_masses=masses, pilot=pilot, **sought, **stated)
    except UsageError as error:
        raise config.located(error, [name for name, value in options.items() if value is not None]) from error
    if form == "json":
        click.echo(planned.to_text(), nl=False)
    else:
        output_console().print(terminal.show(plan_blocks(planned)))
