"""The unit tests that WebAssembly can run: one line for each, its name and the sources that make it besides tests/oracle, without their ending.

Usage: meson introspect build --targets | programs.py
Left out is what needs files, processes, signals, the command, or another library than libdcrf.
"""
import json
import os
import sys

NOT_HERE = {
    "test_allocations",  # wraps pthread_create
    "test_cli_io",  # reads files, with what the command has for it
    "test_division",  # observes a pool, which WebAssembly's does not let anyone do
    "test_lattice_accuracy",  # measures more than it touches, on a photograph where there is one
    "test_limits",  # starts a thread
    "test_lp_glpk",
    "test_photos",
    "test_scribble_quality",
    "test_threads",  # forks, signals
}

for target in json.load(sys.stdin):
    name = target["name"]
    if target["type"] != "executable" or not name.startswith("test_") or name in NOT_HERE:
        continue
    groups = target["target_sources"]
    if any("FAKE_BACKEND" in flag for group in groups for flag in group.get("parameters", [])):
        continue  # loads a library
    sources = [path for group in groups for path in group.get("sources", []) if os.path.basename(path) != "no_threads.c"]
    folders = {os.path.relpath(os.path.dirname(path)) for path in sources}
    if folders == {"tests/unit"}:
        print(name, *(os.path.relpath(path).removesuffix(".c") for path in sources))
