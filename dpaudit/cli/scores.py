"""`dpaudit scores`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

from dpaudit.cli.group import command, list_option, shared
from dpaudit.cli.outputs import AUDIT_FORMATS, chosen_outputs, finish, write_reports
from dpaudit.config import Config
from dpaudit.errors import UsageError

if TYPE_CHECKING:
    from dpaudit.scores.result import ScoresResult

OPTIONS = ("design", "confidence", "seed", "guesses", "assume", "store", "name")  # of the audit itself


@command("scores")
@click.argument("scores_in", metavar="IN", required=False)
@click.argument("scores_out", metavar="OUT", required=False)
@click.option(
    "--from-training",
    "training",
    metavar="TARGET",
    help="Instead of IN and OUT: train once, by package.module:function or file.py:function, or by example or opacus.",
)
@click.option(
    "--release",
    metavar="FILE",
    help="IN and OUT are tables in CSV, real and holdout records: audit this table, which was released from IN.",
)
@click.option("--canaries", type=int, help="With --from-training: how many.  [default: 1000]")
@click.option("--claim", required=True, help="The promise, as for `dpaudit audit`: eps=8,delta=1e-5 or mu=1.")
@click.option(
    "--design",
    type=click.Choice(["one-run", "many-runs", "sequential", "paired"]),
    default="one-run",
    show_default=True,
    help="How the scores came about.",
)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="For the verdict and all bounds.")
@click.option("--seed", type=int, help="Of the order of runs, ties and coins.  [default: 0]")
@click.option("--guesses", type=int, help="One run: canaries to guess on, decided beforehand.  [default: four share]")
@click.option(
    "--assume",
    type=click.Choice(["nothing", "independent"]),
    default="nothing",
    show_default=True,
    help="One run: the bound that the verdict rests on, of the two that are printed.",
)
@click.option("--store", metavar="FILE", help="Sequential: an evidence store that these scores go on in, by --name.")
@click.option("--name", help="With --store: what the scores are of, such as the training and the attack.")
@shared("table")
@click.option("--out", help="Folder to write scores.json, scores.html and scores.md to.  [default: none]")
@list_option("--report", help=f"Formats to write there, with commas.  [default: {','.join(AUDIT_FORMATS)}]")
def scores_command(ctx: click.Context, given: Any) -> None:
    """Audit a training from the scores of canaries that were in it, and of canaries that were not.

    With --from-training, dpaudit tosses a coin for each canary and calls the training once: train(is_in, rng) returns
    the scores of all canaries, or a dpaudit.scores.training.TrainingRecord, whose pitfalls become notes.

    IN and OUT end in .csv, .txt, .npy, .npz, .json or .parquet; FILE:NAME names a column. Larger scores speak for "in".
    With --store, give files that grow, or new scores alone; what was counted is not counted again.
    Exit status as of `audit`: 1 a violation, 5 if so few canaries could not have shown one.
    """
    from dpaudit.reports import scores
    from dpaudit.scores.auditing import audit_scores

    out, options = given.out, {name: getattr(given, name) for name in OPTIONS}
    if given.report is not None and out is None:
        raise UsageError(f"out must name a folder for the reports, got none with --report {given.report}.")
    asked, folder = chosen_outputs(Config(), given.report, out, None)
    if given.training is not None:
        result = _from_training(given, options)
    elif given.scores_in is None or given.scores_out is None:
        raise UsageError("scores must be two files, IN and OUT, or a training with --from-training, got neither.")
    elif given.canaries is not None:
        raise UsageError(f"canaries must go with --from-training, got {given.canaries} without it.")
    elif given.release is not None:
        from dpaudit.scores.published import audit_published

        _check_one_run("release", options, ("store", "name", "guesses"))
        result = audit_published(given.release, given.scores_in, given.scores_out, given.claim, **options)
    else:
        result = audit_scores(given.scores_in, given.scores_out, given.claim, **options)
    write = functools.partial(write_reports, result, folder, asked, "scores")
    finish(ctx, given, result, lambda: scores.brief(result), write, result.exit_status)


def _from_training(given: Any, options: dict[str, Any]) -> ScoresResult:
    """The audit of a training that is called once: `example`, `example:FAULT`, `opacus`, or a target."""
    from dpaudit.scores.training import audit_training, example
    from dpaudit.subjects.targets import load_target

    target = given.training
    for name in ("release", "scores_in", "scores_out"):
        if (value := getattr(given, name)) is not None:
            raise UsageError(f"{name} must not stand beside --from-training, got {value!r}.")
    _check_one_run("from-training", options, ("store", "name"))
    name, _, fault = target.partition(":")
    target = "dpaudit.scores.torch_scores:opacus_training" if target == "opacus" else target
    train = example(fault or "none") if name == "example" else load_target(target)
    if not callable(train):
        raise UsageError(f"training must be a function train(is_in, rng), got {target!r}, a {type(train).__name__}.")
    return audit_training(train, given.claim, 1_000 if given.canaries is None else given.canaries, **options)


def _check_one_run(beside: str, options: dict[str, Any], without: tuple[str, ...]) -> None:
    """Take the design and options that make no sense beside another one out of the options, if they are not stated."""
    if (design := options.pop("design")) != "one-run":
        raise UsageError(f"design must be 'one-run' with --{beside}, got {design!r}.")
    for name in without:
        if (value := options.pop(name)) is not None:
            raise UsageError(f"{name} must not stand beside --{beside}, got {value!r}.")
