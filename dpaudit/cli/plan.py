"""`dpaudit plan`."""

from __future__ import annotations

from typing import Any

import click

from dpaudit.arguments import MODES
from dpaudit.cli.group import command, shared
from dpaudit.cli.outputs import print_result, subject_output
from dpaudit.cli.subjects import check_target, given_subject
from dpaudit.config import read_config
from dpaudit.errors import UsageError


@command("plan")
@click.argument("target", metavar="[TARGET]", required=False)
@shared("claim", "pairs")
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
@shared("table")
def plan_command(_: click.Context, given: Any) -> None:
    """Say what an audit would cost and could find, before it runs.

    For several masses of the event that an excess may sit in: the smallest loss that the audit finds, and how many
    samples the excess needs. TARGET is run only to see how long a run takes. Exit status 0.
    """
    from dpaudit.audits.planning import OF_AUDIT, plan
    from dpaudit.privacy.parsing import as_claim
    from dpaudit.reports.plan import excess, plan_blocks, share

    config = read_config()
    promise = as_claim(given.claim)
    if given.design is not None:
        from dpaudit.reports import scores
        from dpaudit.scores.planning import plan_one_run

        if given.target is not None or promise is None:
            beside = "no claim" if promise is None else f"TARGET {given.target!r}"
            raise UsageError(f"design must stand with --claim and without TARGET, got {given.design!r} with {beside}.")
        run = plan_one_run(promise, given.confidence if given.confidence is not None else 0.95)
        print_result(given.form, run.to_text, lambda: scores.plan_blocks(run))
        return
    check_target(given.target)
    with subject_output():
        subject, pairs = given_subject(given, promise)
    sought: dict[str, Any] = {"over": excess(given.over), "power": share("power", given.power)}
    stated = {name: getattr(given, name) for name in OF_AUDIT}
    known = config.audit_options(stated)
    options = {name: known[name] for name in OF_AUDIT if name in known}
    try:
        masses = [share("event-mass", part) for part in given.event_mass.split(",")]
        sought |= {"event_masses": masses, "pilot": given.pilot, "seconds": given.seconds}
        with subject_output():
            planned = plan(subject, promise, pairs, **sought, **options)
    except UsageError as error:
        raise config.located(error, [name for name, value in stated.items() if value is not None]) from error
    print_result(given.form, planned.to_text, lambda: plan_blocks(planned))
