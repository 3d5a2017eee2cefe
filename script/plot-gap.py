#!/usr/bin/env python3
"""Draw relative gap against time, both logarithmic: plot-gap.py gap.csv > gap.svg"""
import csv
import math
import sys

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 420, 70, 50, 20, 20
COLOURS = ["#0b6e4f", "#c77700", "#b3261e"]

curves = {}
with open(sys.argv[1], newline="") as file:
    for row in csv.DictReader(file):
        gap = float(row["relative_gap"])
        if gap > 0:
            curves.setdefault(row["schedule"], []).append((float(row["time_s"]), 100 * gap))

times = [t for curve in curves.values() for t, _ in curve]
gaps = [g for curve in curves.values() for _, g in curve]
t0, t1 = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
g0, g1 = math.floor(math.log10(min(gaps))), math.ceil(math.log10(max(gaps)))


def x(time):
    return LEFT + (math.log10(time) - t0) / (t1 - t0) * (WIDTH - LEFT - RIGHT)


def y(gap):
    return TOP + (g1 - math.log10(gap)) / (g1 - g0) * (HEIGHT - TOP - BOTTOM)


print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
      f'font-family="sans-serif" font-size="13">')
print(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>')
for e in range(t0, t1 + 1):
    print(f'<line x1="{x(10**e):.1f}" y1="{TOP}" x2="{x(10**e):.1f}" y2="{HEIGHT - BOTTOM}" '
          f'stroke="#ddd"/><text x="{x(10**e):.1f}" y="{HEIGHT - BOTTOM + 18}" '
          f'text-anchor="middle">{10**e:g} s</text>')
for e in range(g0, g1 + 1):
    print(f'<line x1="{LEFT}" y1="{y(10**e):.1f}" x2="{WIDTH - RIGHT}" y2="{y(10**e):.1f}" '
          f'stroke="#ddd"/><text x="{LEFT - 8}" y="{y(10**e) + 4:.1f}" '
          f'text-anchor="end">{10**e:g} %</text>')
for number, (name, curve) in enumerate(curves.items()):
    colour = COLOURS[number % len(COLOURS)]
    points = " ".join(f"{x(t):.1f},{y(g):.1f}" for t, g in curve)
    print(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
    print(f'<text x="{WIDTH - RIGHT - 8}" y="{TOP + 18 + 18 * number}" text-anchor="end" '
          f'fill="{colour}">{name}</text>')
print(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">time</text>')
print(f'<text x="16" y="{(TOP + HEIGHT - BOTTOM) / 2}" text-anchor="middle" transform="rotate(-90 16 '
      f'{(TOP + HEIGHT - BOTTOM) / 2})">certified relative gap</text>')
print("</svg>")
