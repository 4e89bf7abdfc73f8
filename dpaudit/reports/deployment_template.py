"""The deployment file with every key and what it means, for `dpaudit init deployment`: each key is commented out.

The comments are made from the tables that the reader knows (`dpaudit.reports.deployment`), so that no key is missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from dpaudit.reports.deployment import ITEMS, PARAMETERS, REGISTRY, TEXTS

# Key, an example, and what it means.
EXAMPLES: Mapping[str, tuple[str, str]] = {
    "name": ("City statistics", "What the report is about."),
    "version": ("2.1", "The version of the mechanism that is deployed."),
    "contact": ("privacy@example.org", "Who answers questions about this report."),
    "owner": ("Statistics department", "Who is responsible for the mechanism."),
    "approver": ("Data protection officer", "Who decides whether it may be released."),
    "description": ("Counts of inhabitants by city.", "What is published."),
    "purpose": ("Planning of schools.", "What the published data are for."),
    "region": ("Germany", "The region that the data are about, or whose law applies."),
    "data_source": ("Register of residents, 2025.", "Where the data come from."),
    "retention": ("Records are deleted after 10 years.", "How long the records are kept."),
}
ITEM_EXAMPLES: Mapping[str, str] = {
    "epsilon": "Epsilon 1 a year was chosen by the board.",
    "unit": "One inhabitant; everybody has one row.",
    "contribution": "One person has one record.",
    "correctness": "The code was reviewed by two people.",
    "bins": "All bins are fixed beforehand.",
    "floating_point": "The noise is drawn on a grid.",
    "side_channels": "Answers are published once a year, so that running times are not seen.",
    "utility": "Errors below 100 are good enough.",
    "human_bias": "No decision about a person rests on the answer.",
    "learning": "No model is trained, and no synthetic data are made.",
    "queries": "One query is answered, once.",
    "other_releases": "Nothing else is released about these people.",
    "trust": "A curator who is trusted sees the records and adds the noise.",
    "security": "Only two people can read the records.",
}
REGISTRY_EXAMPLES: Mapping[str, str] = {
    "curator": "Example Statistics Office",
    "author": "A. Person",
    "unprotected": "The list of cities is published as it is.",
    "preprocessing": "Outliers above 100 are clipped; the limit was chosen without looking at the data.",
    "post_processing": "Negative counts are set to 0.",
    "sources": "https://example.org/methods",
}


def text() -> str:
    """The file, in TOML; nothing in it is declared until a comment sign is taken away."""
    parts = [
        "# What this deployment declares: recorded in compliance reports, marked as declared, and checked by nobody.",
        "# Take the sign # away from what you want to declare. Read it with:",
        "#   dpaudit report --profile compliance --deployment deployment.toml audit.json",
        "",
    ]
    for key in TEXTS:
        example, meaning = EXAMPLES[key]
        parts += [f"# {meaning}", f"# {key} = {_quoted(example)}"]
    parts += ["# When the data were first published.", "# published = 2026-01-31"]
    parts += ['# Where inputs lie on a map, for drawing alone: a JSON file {"name": [x, y], ...} beside this one.']
    parts += ['# coordinates = "coordinates.json"', ""]
    parts += ["# What is so, by the item of the report that it answers.", "# [declared]"]
    parts += [
        line for key, name in ITEMS.items() for line in (f"# {name}:", f"# {key} = {_quoted(ITEM_EXAMPLES[key])}")
    ]
    parts += ["", "# Why an item is beside the point. An item is declared or not applicable, never both."]
    parts += ["# [not_applicable]", f"# Any of: {', '.join(ITEMS)}", '# bins = "The answer is one number."']
    parts += ["", "# What may be spent on one data set over all its releases, and what each release spent."]
    parts += ["# [budget]", f"# The parameter that is counted: {', '.join(PARAMETERS)}.", '# parameter = "epsilon"']
    parts += ["# limit = 2.0", '# releases = [{name = "2025", date = 2025-01-31, spent = 1.0}]']
    parts += ["", "# What a record in the public registry of deployments says beside it (--report registry)."]
    parts += ["# [registry]"]
    for key, known in REGISTRY.items():
        parts += [f"# One of: {', '.join(known)}."] if known else []
        parts.append(f"# {key} = {_quoted(known[0] if known else REGISTRY_EXAMPLES[key])}")
    return "\n".join(parts) + "\n"


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
