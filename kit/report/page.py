"""From results to one HTML file: which sections a reader gets, laid out by a template that escapes everything."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

import kit
from kit import numbers
from kit.report import breaks, engine, evidence, interactive, money, quality, settings
from kit.report.batch import view
from kit.report.before_after import before_after
from kit.report.table import Section, plain
from kit.report.verdict import verdict
from kit.report.verdict_trail import in_short, short_trail

Row = dict[str, Any]
READINGS = ("both", "finance", "infra")
HEADING = "Which eviction policy should this prefix cache run?"


def text(value: Any) -> str:
    """A string as HTML text: & < > escaped, quotes left alone, so that a sentence stands in the file word for word."""
    return escape(numbers.visible(str(value)), quote=False)


def _visible(value: Any) -> Any:
    """Every string a template writes, with hiding characters made visible; finished HTML passes unchanged."""
    return numbers.visible(value) if type(value) in (str, numbers.Written) else value


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The template environment: automatic escaping, undefined names are errors, templates from the package."""
    made = Environment(
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: (files("kit.report") / name).read_text(encoding="utf-8")),
    )
    return made


def style() -> str:
    """The package's own style sheet."""
    return (files("kit.report") / "report.css").read_text(encoding="utf-8")


def sections(results: Row, reading: str) -> list[Section]:
    """The sections of a reading: "finance" has a short trail, no curves and settings, "infra" no bills and prices."""
    every = [
        short_trail(results) if reading == "finance" else evidence.trail(results, in_short(results, reading)),
        evidence.evidence(results) if reading != "finance" else None,
        settings.settings(results, reading == "infra") if reading != "finance" else None,
        engine.engine(results) if reading != "finance" else None,
        breaks.breaks(results) if reading != "finance" else None,
        money.money(results, with_figure=reading == "finance") if reading != "infra" else None,
        quality.what_would_change(results),
        quality.quality(results),
        quality.words(),
    ]
    return [section for section in every if section is not None and section.parts]


def page(results: Row, reading: str = "both") -> str:
    """The whole page as text; raises ValueError for an unknown reading."""
    if reading not in READINGS:
        raise ValueError(f"reading must be one of {', '.join(READINGS)}, got {reading!r}")
    said = verdict(results)
    first = [table for table in (before_after(results),) if table]
    template, css, script = environment().get_template("page.html.j2"), style(), interactive.script()
    return template.render(
        title=plain(f"{said.sentence} {said.scope}"),
        heading=HEADING,
        css=css,
        script=script,
        policy=interactive.policy(css, script),
        kit_version=results.get("kit_version", kit.__version__),
        verdict={
            "scope": said.scope,
            "sentence": text(said.sentence),
            "budget": said.budget,
            "meaning": said.meaning,
            "beside": said.beside,
            "lines": said.lines,
            "keys_shown": said.keys,
        },
        first=first,
        sections=sections(results, reading),
        footer=quality.footer(results),
    )


def index_page(entries: Sequence[Row]) -> str:
    """The index of a batch as text."""
    css = style()
    template = environment().get_template("index.html.j2")
    return template.render(css=css, policy=interactive.policy(css), kit_version=kit.__version__, **view(entries))
