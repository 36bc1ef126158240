"""A figure: a chart, its finding, its alt text and the numbers behind it; drawn without a network.

Notebook output of a figure, or after `enable()` of any Altair chart, is a bundle: a Vega-Lite v5 specification (read by
JupyterLab's own Vega, interactive and offline), a static SVG (kept in the saved notebook) and one line of text.
Altair's own renderers either load scripts from a network or emit a type that nbformat refuses.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # jsonschema would compile 35 grammars (1.4 s)

import altair as alt  # noqa: E402

from kit import numbers  # noqa: E402
from kit.charts.theme import theme  # noqa: E402

LAB_MIME = "application/vnd.vegalite.v5+json"
LAB_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


@dataclass(frozen=True)
class Figure:
    """One figure: `finding` is its heading, `alt` its numbers in words, `rows` its data, `caption` how to read it.

    `span` is the reach of its budget axis in tokens, where it has one.
    """

    name: str
    finding: str
    alt: str
    caption: str
    chart: Any
    rows: list[dict[str, Any]] = field(repr=False)
    span: tuple[float, float] | None = None

    @property
    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification with the kit's theme and the alt text as its description."""
        spec = self.chart.to_dict()
        spec["config"] = theme()
        spec["description"] = self.alt
        return spec

    def svg(self) -> str:
        """The figure as a static SVG."""
        return svg_of(self.spec)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return bundle(self.spec)


@lru_cache(maxsize=1)
def vega_lite_version() -> str:
    """The newest Vega-Lite that vl-convert carries, so that it never asks for another."""
    import vl_convert

    versions = vl_convert.get_vegalite_versions()
    return str(max(versions, key=lambda version: [int(part) for part in version.split(".")[:2]]))


def svg_of(spec: dict[str, Any]) -> str:
    """A Vega-Lite specification drawn as SVG by vl-convert, in process: no browser, no network."""
    return _drawn(json.dumps(spec))


@lru_cache(maxsize=32)
def _drawn(spec: str) -> str:
    """The drawing of a specification as JSON text; both readings of a report show the same few."""
    import vl_convert

    return numbers.visible(str(vl_convert.vegalite_to_svg(spec, vl_version=vega_lite_version())))


def bundle(spec: dict[str, Any]) -> dict[str, Any]:
    """The notebook output of a chart. A chart without a description is refused: a screen reader would find nothing."""
    description = spec.get("description")
    if not description:
        raise ValueError("chart has no description: set one from its numbers, chart.properties(description=...)")
    return {
        LAB_MIME: {**spec, "$schema": LAB_SCHEMA},
        "image/svg+xml": svg_of(spec),
        "text/plain": f"<figure: {description}>",
    }


def _theme_of_altair() -> Any:
    return {"config": theme()}


def enable() -> None:
    """Make every Altair chart of a notebook draw offline, with the kit's theme and without a row limit surprise."""
    alt.renderers.register("kit", lambda spec, **_: bundle(spec))
    alt.renderers.enable("kit")
    alt.theme.register("kit", enable=True)(_theme_of_altair)
    alt.data_transformers.enable("default", max_rows=5_000, consolidate_datasets=False)
