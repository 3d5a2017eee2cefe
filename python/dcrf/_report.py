"""Results as HTML: tables, pictures and plots in one string that needs no other file."""

import base64
import html
import math

import numpy as np

from ._png import encode, palette

_STYLE = """
body { font: 15px/1.5 sans-serif; margin: 2em auto; max-width: 62em; padding: 0 1em; color: #222 }
figure { display: inline-block; margin: 0 1em 1em 0; vertical-align: top }
img { image-rendering: pixelated; max-width: 28em; width: 100% }
table { border-collapse: collapse; margin: 1em 0 }
th { text-align: left; font-weight: 600 } th, td { padding: .15em 1em .15em 0 }
td + td { text-align: right }
i { display: inline-block; width: 1em; height: 1em; vertical-align: -.1em; border: 1px solid #888 }
"""


def data_address(picture):
    """A picture as the address of an image."""
    return "data:image/png;base64," + base64.b64encode(encode(picture)).decode()


def table(rows, head=None):
    """A table of texts; the first column are names."""
    head = "" if head is None else "<tr>" + "".join(f"<th>{html.escape(str(name))}</th>" for name in head) + "</tr>"
    body = "".join(
        f"<tr><th style='text-align:left'>{html.escape(str(name))}</th>"
        + "".join(f"<td>{html.escape(str(value))}</td>" for value in values)
        + "</tr>"
        for name, *values in rows
    )
    return f"<table>{head}{body}</table>"


def page(title, body):
    """A whole page."""
    return (
        f"<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><title>{html.escape(title)}</title>"
        f"<style>{_STYLE}</style></head><body><h1>{html.escape(title)}</h1>{body}</body></html>\n"
    )


def _figure(picture, caption):
    return f"<figure><img alt='' src='{data_address(picture)}'><figcaption>{html.escape(caption)}</figcaption></figure>"


def _curve(trace, width=560, height=200):
    """Energy and bound against time, from the iterations on; nothing where there are fewer than two moments."""
    shown = np.array([stage != "candidates" for stage in trace["stage"]], bool)
    time_s = trace["time_s"][shown]
    curves = [("best_energy", "#06c"), ("lower_bound", "#c40")]
    values = np.concatenate([trace[name][shown] for name, _ in curves])
    values = values[np.isfinite(values)]
    if len(time_s) < 2 or not values.size or time_s[-1] <= 0:
        return ""
    low, high = values.min(), values.max()
    lines = ""
    for name, colour in curves:
        points = " ".join(
            f"{width * t / time_s[-1]:.1f},{height * (high - value) / max(high - low, 1e-300):.1f}"
            for t, value in zip(time_s, trace[name][shown])
            if math.isfinite(value)
        )
        if points:
            lines += f"<polyline points='{points}' fill='none' stroke='{colour}' stroke-width='2'/>"
    return (
        f"<h2>Over time</h2><p>Energy (blue) and lower bound (red), from {low:.6g} to {high:.6g}, over {time_s[-1]:.2f} s.</p>"
        f"<svg viewBox='-4 -4 {width + 8} {height + 8}' width='{width}' height='{height}'>{lines}</svg>"
    )


def page_of_result(result, image, classes, title):
    """The page of ``Result.report``."""
    pictures = _figure(result.overlay(image), "the labels over the image") + _figure(result.picture(), "the labels")
    if result.marginals is not None and result.labels.ndim == 2:
        sure = result.marginals.max(0)
        pictures += _figure((255 * sure.clip(0, 1)).astype(np.uint8), "how sure: the largest marginal, white is 1")
    numbers, pixels = np.unique(result.labels, return_counts=True)
    rows = ""
    for number, count in zip(numbers.tolist(), pixels.tolist()):
        red, green, blue = palette(np.array([number]))[0].tolist()
        name = classes[number] if classes is not None and number < len(classes) else f"label {number}"
        share = 100 * count / result.labels.size
        rows += (
            f"<tr><td><i style='background:rgb({red},{green},{blue})'></i> {html.escape(str(name))}</td>"
            f"<td>{share:.2f} %</td></tr>"
        )
    return page(title, f"{pictures}{table(result.figures())}<h2>Labels</h2><table>{rows}</table>{_curve(result.trace)}")
