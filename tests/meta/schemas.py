"""The published schemas of results, made from the types that their files are written and read by.

A property is a field of the dataclass (`dpaudit.results.codec.Form`) with the sentence that the class's docstring has
on it, and with the texts that it may be. Whole numbers are counts. Other numbers are at least 0, or infinite, and all
properties are in every file, unless a list here says otherwise; what no type says is in `STATED`.

    python tests/meta/schemas.py
"""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpaudit.conformance.result import STATUSES, CheckResult
from dpaudit.judgements.judgement import Judgement
from dpaudit.reports.cases import STATUSES as CASES
from dpaudit.reports.deployment import PARAMETERS, Deployment
from dpaudit.reports.dossier import Line, SignOff
from dpaudit.reports.dossier_json import SCHEMA as COMPLIANCE
from dpaudit.reports.dossier_json import UNSAID, UNSAID_ITEM
from dpaudit.reports.items import Item
from dpaudit.reports.rows import KINDS as PROMISES
from dpaudit.reports.sign_off import DECISIONS
from dpaudit.results.model import AuditResult
from dpaudit.results.plan_result import Plan
from dpaudit.results.saving import json_text
from dpaudit.results.utility_result import UtilityResult
from dpaudit.results.verdicts import Verdict
from dpaudit.scores.result import ScoresResult
from dpaudit.symbolic.certificate import Certificate

FOLDER = Path(__file__).parents[2] / "dpaudit" / "schemas"
KINDS: tuple[Any, ...] = (AuditResult, Certificate, CheckResult, Judgement, Plan, ScoresResult, UtilityResult)
CONVENTIONS = (
    'Losses are in nats; infinities are the texts "inf" and "-inf"; null is what does not apply or was not computed. '
    "What is not required is absent in older files."
)
# Fields by their names, or with those of their classes: probabilities, numbers of either sign, and those that are null
# where they could not be computed.
SHARES = {
    "error_rate", "error_share", "verdict_share", "p_value", "delta", "report_delta", "probability", "event_mass",
    "false_alarm_rate", "mass_left", "share", "rounding", "LossLimit.mass", "TradeOffPoint.type_one",
    "TradeOffPoint.upper", "TradeOffPoint.thresholds_lower", "TradeOffPoint.claimed",
}  # fmt: skip
MEASURED = {  # of the errors of a mechanism, which its owner's loss may let be negative
    f"UtilityFinding.{name}" for name in ("limit", "allowed", "measured", "lower", "upper", "detectable", "ratio",
                                          "ratio_lower", "ratio_upper", "detectable_ratio")
}  # fmt: skip
SIGNED = MEASURED | {
    "log_wealth", "line", "edges", "Sketch.guesses", "log10_p_value", "EventEstimate.loss",
    "CertifiedPair.epsilon_lower", "CertifiedPair.epsilon_upper", "CertifiedPair.value_lower",
    "CertifiedPair.value_upper", "profile", "Line.low", "Line.high", "Deployment.coordinates",
}  # fmt: skip
UNKNOWN = MEASURED | {
    "Finding.epsilon_lower", "Finding.parameter_lower", "Power.detectable", "Power.at_budget", "LearnedLoss.loss",
    "Judgement.loss",
}  # fmt: skip
# Properties that older files lack, beside those that are left out where they say nothing.
OPTIONAL = {
    "floating_point", "side_findings", "pool", "Finding.notes", "keys", "severity", "printed", "types", "verdict_share",
    "Power.learned", "sketch", "FloatingPointPair.rule", "AllPairsTable.parameter", "AllPairsTable.parameter_lower",
    "real_runs", "CheckResult.options", "pools", "samples_wanted", "time_limit", "by_form", "textbook", "assume",
    "independent", "says_nothing", "harm", "learned_with", "tried", "settles", "SignOff.mechanisms",
    *(f"Deployment.{name}" for name in ("budget", "owner", "approver", "description", "purpose", "region",
                                        "data_source", "retention", "published", "registry")),
}  # fmt: skip
NUMBERS = {"share": SHARES, "number": SIGNED}
LOOK = ("number", "bound")  # log wealth and a lower bound, beside draws
TEXT, COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
DEFINITIONS: Mapping[str, Any] = {
    "count": COUNT,
    "share": {"type": "number", "minimum": 0, "maximum": 1},
    "bound": {"anyOf": [{"type": "number", "minimum": 0}, {"const": "inf"}]},
    "number": {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]},
    "environment": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}},
    "fraction": {"type": "string", "pattern": "^-?(0x[0-9a-f]+|[0-9]+)/(0x[0-9a-f]+|[0-9]+)$"},
    "confidence": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "seed": {"anyOf": [COUNT, {"const": "(redacted)"}]},
    "subject": {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": TEXT,
            **{name: {"type": ["string", "null"]} for name in ("target", "fingerprint", "interface")},
            "states": {"type": "array", "items": {"enum": ["claim", "pairs"]}},
        },
    },
    "types": {
        "description": "What a JSON value stands for: `is` names the type, `of` has the types of its items or of some "
        "keys (null: as it is), `each` that of all items.",
        "type": ["object", "null"],
        "additionalProperties": False,
        "required": ["is"],
        "properties": {
            "is": {"enum": ["float", "number", "array", "dict", "list", "tuple", "set", "frozenset"]},
            "dtype": TEXT,
            "shape": {"type": "array", "items": COUNT},
            "each": {"$ref": "#/$defs/types"},
            "of": {
                "type": ["array", "object"],
                "items": {"$ref": "#/$defs/types"},
                "additionalProperties": {"$ref": "#/$defs/types"},
            },
        },
    },
    "input": {
        "type": "object",
        "additionalProperties": False,
        "required": ["value", "types", "held"],
        "properties": {"value": {}, "types": {"$ref": "#/$defs/types"}, "held": {"type": "boolean"}},
    },
}


def or_null(form: dict[str, Any]) -> dict[str, Any]:
    """A schema that lets null through as well."""
    if "anyOf" in form:
        return {**form, "anyOf": [*form["anyOf"], {"type": "null"}]}
    is_plain = isinstance(form.get("type"), str)
    return {**form, "type": [form["type"], "null"]} if is_plain else {"anyOf": [form, {"type": "null"}]}


# What stands in a file in the place of a field, or beside the fields, by class; None: the file has no such property.
INPUTS = ("x_id", "x_prime_id", "x", "x_prime")
STATED: Mapping[str, Mapping[str, Any]] = {
    "SideFinding": {"kind": {"type": "string", "pattern": "^[a-z][a-z_]*$"}},
    "Line": {
        **dict.fromkeys(UNSAID),
        "kind": {"enum": list(PROMISES)},
        "learned_with": {
            "type": ["number", "null"],
            "description": "In older files, in the place of `tried`: the probability with which leaks are found.",
        },
    },
    "Item": dict.fromkeys(UNSAID_ITEM),
    "SignOff": {
        "date": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
        "decision": {"enum": [*DECISIONS, ""]},
    },
    "Decision": {"decision": {"enum": list(DECISIONS)}},
    "Ledger": {"parameter": {"enum": list(PARAMETERS)}},
    "Finding": {
        "looks": {
            "type": "array",
            "items": {
                "type": "array",
                "prefixItems": [{"$ref": "#/$defs/count"}, *(or_null({"$ref": f"#/$defs/{one}"}) for one in LOOK)],
                "minItems": 3,
                "maxItems": 3,
            },
        },
        "printed": {"type": "array", "items": {"enum": ["x", "x_prime"]}, "uniqueItems": True},
        "types": {
            "type": "object",
            "additionalProperties": False,
            "properties": {name: {"$ref": "#/$defs/types"} for name in ("x", "x_prime")},
        },
    },
    "Power": {
        "by_mass": {
            "type": "array",
            "items": {
                "type": "array",
                "prefixItems": [{"$ref": f"#/$defs/{one}"} for one in ("share", "bound")],
                "minItems": 2,
                "maxItems": 2,
            },
        }
    },
    "AllPairsTable": {
        "first": None,
        "second": None,
        "pairs": {
            "description": 'Positions of x and of x_prime; "all" for every i < j, by i and then j.',
            "anyOf": [
                {"const": "all"},
                {"type": "array", "items": {"type": "array", "items": COUNT}, "minItems": 2, "maxItems": 2},
            ],
        },
        "verdict": {"type": "string", "pattern": "^[vein-]*$"},
    },
    "CheckResult": {
        "mechanisms": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "target", "fingerprint", "interface", "claim", "pairs"],
                "properties": {
                    **{name: TEXT for name in ("name", "fingerprint", "interface")},
                    **{name: {"type": ["string", "null"]} for name in ("target", "claim")},
                    "pairs": COUNT,
                },
            },
        },
        "counts": {
            "type": "object",
            "additionalProperties": {"type": "integer", "minimum": 1},
            "propertyNames": {"enum": list(STATUSES)},
        },
    },
    "Judgement": {
        "inputs": {
            "description": "The pair.",
            "type": ["object", "null"],
            "additionalProperties": False,
            "required": list(INPUTS),
            "properties": {name: TEXT if name.endswith("id") else {"$ref": "#/$defs/input"} for name in INPUTS},
        },
        "replay": {"type": "string", "description": "The command that judges the pair again, if there is one."},
    },
}
PROPERTIES = {"Certificate": ("verdict",), "Judgement": ("exit_status",)}  # of classes that write them by themselves


def schema_of(kind: Any) -> dict[str, Any]:
    """The schema of the file of a result."""
    definitions: dict[str, Any] = {}
    return _file(kind.schema, Maker(definitions).object(kind), definitions)


def _file(schema: str, whole: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a file from that of what it holds."""
    name, version = schema.removeprefix("dpaudit.").split("/")
    whole["required"] = ["schema", *whole["required"]]
    whole["properties"] = {"schema": {"const": schema}, **whole["properties"]}
    whole["description"] = f"{whole['description']} {CONVENTIONS}"
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:dpaudit:{name}:{version}",
        "title": schema,
    }
    return {**head, **whole, "$defs": dict(sorted(definitions.items()))}


def compliance() -> dict[str, Any]:
    """The schema of a compliance report: its parts by their types, and what `dossier_json` puts beside them."""
    definitions: dict[str, Any] = {}
    made = {
        name: Maker(definitions).value(kind, f"Dossier.{name}")
        for name, kind in {
            "dpaudit": str, "verdict": Verdict, "headline": str, "sections_of": str, "is_redacted": bool,
            "false_alarm_rate": float | None, "promises": list[Line], "items": list[Item],
            "deployment": Deployment | None, "sign_off": SignOff | None, "results": list[Any], "attachments": list[Any],
            "summary": list[Any],
        }.items()
    }  # fmt: skip
    made["items"]["minItems"] = 14
    made["cases"] = STATED["CheckResult"]["counts"] | {"propertyNames": {"enum": list(CASES)}}
    made["summary"]["items"] = _closed({"question": TEXT, "answer": {"type": "array", "items": TEXT}})
    for name, kinds in (("results", ("audit", "check", "utility")), ("attachments", ("certificate", "scores"))):
        about = f"As its own schema says: {' or '.join(f'dpaudit.{kind}/1' for kind in kinds)}."
        result = {"type": "object", "required": ["schema"], "description": about}
        digest = {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "SHA-256 of the saved file, or keyed."}
        file = {"name": TEXT, "kind": {"enum": list(kinds)}, "digest": digest, "digest_is_keyed": {"type": "boolean"}}
        made[name]["items"] = _closed({**file, "result": result})
    late = ("promises", "false_alarm_rate", "sign_off", "attachments")
    about = "A compliance report: items of an evaluation, what was declared, and the results that it was made from."
    whole = {**_closed(made), "required": [name for name in made if name not in late], "description": about}
    return _file(COMPLIANCE, whole, definitions)


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object with these properties and no others."""
    names = {"required": list(properties), "properties": dict(properties)}
    return {"type": "object", "additionalProperties": False, **names}


class Maker:
    """Makes schemas of types; those that are referred to are added to `definitions`."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self.definitions = definitions

    def object(self, kind: Any) -> dict[str, Any]:
        """The schema of a dataclass."""
        about, sentences = said_of(kind)
        hints = typing.get_type_hints(kind)
        found: dict[str, Any] = {}
        required = []
        for field in dataclasses.fields(kind):
            if not field.metadata.get("saved", True):
                continue
            name = field.metadata.get("name", field.name)
            values, sentence = sentences.get(field.name, ((), ""))
            form = self.value(hints[field.name], f"{kind.__name__}.{field.name}")
            form = {"enum": list(values)} if values and hints[field.name] is str else form
            found[name] = {**form, "description": sentence} if sentence else form
            is_optional = field.metadata.get("omitted") or {field.name, f"{kind.__name__}.{field.name}"} & OPTIONAL
            required += [] if is_optional else [name]
        stated = ("verdict",) if getattr(kind, "decided_by", "") else PROPERTIES.get(kind.__name__, ())
        for name in (*stated, *getattr(kind, "derived", ())):
            getter = getattr(kind, name).fget
            about_it = " ".join(inspect.getdoc(getter).partition("\n\n")[0].split())
            form = self.value(typing.get_type_hints(getter)["return"], f"{kind.__name__}.{name}")
            found[name] = {**form, "description": about_it}
            required.append(name)
        for name, form in STATED.get(kind.__name__, {}).items():
            required += [name] if name not in {*found, *OPTIONAL} else []
            described = {key: one for key, one in found.get(name, {}).items() if key == "description"}
            found[name] = None if form is None else {**self.referred(form), **described}
        found = {name: form for name, form in found.items() if form is not None}
        required = [name for name in dict.fromkeys(required) if name in found]
        return {
            "description": about,
            "type": "object",
            "additionalProperties": False,
            "required": required,
            "properties": found,
        }

    def referred(self, form: Any) -> Any:
        """A form as it is; what it refers to is defined."""
        for name in re.findall(r"'#/\$defs/(\w+)'", repr(form)):
            if name not in self.definitions:
                self.definitions[name] = DEFINITIONS[name]
                self.referred(DEFINITIONS[name])
        return form

    def named(self, name: str) -> dict[str, Any]:
        """A reference to a definition."""
        form: dict[str, Any] = self.referred({"$ref": f"#/$defs/{name}"})
        return form

    def value(self, hint: Any, place: str) -> dict[str, Any]:
        """The schema of a type; `place` is the class and the field that has it."""
        origin, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
        name = place.rpartition(".")[2]
        if name in ("subject", "seed", "confidence", "environment") and hint is not str:
            return self.named(name)
        if origin is typing.Annotated:
            return self.value(parts[0], place)
        if hint is Any:
            return {}
        if origin is Literal:
            return {"enum": list(parts)}
        if origin in (typing.Union, types.UnionType):
            (only,) = (part for part in parts if part is not types.NoneType)
            return or_null(self.value(only, place))
        if origin is np.ndarray:
            item = int if np.dtype(typing.get_args(parts[1])[0]).kind == "i" else float
            return {"type": "array", "items": self.value(item, place)}
        if origin in (tuple, list, frozenset):
            items = [self.value(part, place) for part in parts if part is not ...]
            if origin is not tuple or ... in parts:
                return {"type": "array", "items": items[0]}
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if origin in (dict, collections.abc.Mapping):
            entry = self.value(parts[1], place)
            return {"type": "object", **({"additionalProperties": entry} if entry else {})}
        if origin is int:
            return self.named("count")
        if origin in (float, Fraction):
            which = next((one for one, known in NUMBERS.items() if {name, place} & known), "bound")
            form = self.named("fraction" if origin is Fraction else which)
            return or_null(form) if {name, place} & UNKNOWN else form
        if dataclasses.is_dataclass(origin):
            key = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", origin.__name__).lower()
            if key not in self.definitions:
                self.definitions[key] = {}
                self.definitions[key] = self.object(origin)
            return {"$ref": f"#/$defs/{key}"}
        return {"type": {str: "string", bool: "boolean"}[origin]}


def said_of(kind: Any) -> tuple[str, dict[str, tuple[list[str], str]]]:
    """What the docstring of a class says of it; by attribute the texts that it may be, and the sentence on it."""
    about, _, listed = (inspect.getdoc(kind) or "").partition("\n\nAttributes\n----------\n")
    found: dict[str, tuple[list[str], str]] = {}
    for entry in re.split(r"\n(?=\S)", listed.partition("\n\n")[0]):
        head, _, text = entry.partition("\n")
        names, _, stated = head.partition(" : ")
        values = re.findall(r'"([^"]*)"', stated) if stated.startswith("{") else []
        sentence = re.sub(r"\b(None|NaN)\b", "null", " ".join(text.split()))
        found |= dict.fromkeys(names.split(", "), (values, sentence))
    return " ".join(about.split()), found


def written() -> dict[str, str]:
    """The files by their names."""
    found = {kind.schema.removeprefix("dpaudit.").replace("/", "-"): schema_of(kind) for kind in KINDS}
    found["compliance-1"] = compliance()
    return {f"{name}.json": json_text(schema) for name, schema in found.items()}


if __name__ == "__main__":
    for file, content in written().items():
        (FOLDER / file).write_text(content, encoding="utf-8")
