"""Write the presets of the command as a module, so that there is one table: presets.py cli/args/presets.c OUT."""

import pathlib
import pprint
import re
import sys


def numbers(text):
    return tuple(float(number) for number in text.split(","))


def how(text):
    """From "mf, 5 to 10 iterations": the method, and the most iterations."""
    method, _, rest = text.partition(",")
    counts = re.findall(r"\d+", rest)
    return {"method": method, **({"iterations": int(counts[-1])} if counts else {})}


def main():
    source, out = map(pathlib.Path, sys.argv[1:])
    table = re.search(r"presets\[\] = \{\n(.*?)\n\};", source.read_text(), re.DOTALL).group(1)
    presets = {}
    for entry in re.findall(r"^    \{(.*?)\},$", table, re.DOTALL | re.MULTILINE):
        fields = [text or None for text in re.findall(r'"([^"]*)"|NULL', entry)]
        name, note, method, normalize, spatial, bilateral, min_region, gamma, eta, compatibility = fields
        preset = {
            "note": note,
            **how(method),
            "normalize": normalize,
            "spatial": numbers(spatial),
            "bilateral": numbers(bilateral),
        }
        if compatibility:
            preset["compatibility"] = compatibility
        if min_region:
            preset["cliques"] = "meanshift"
            preset["min_region"] = int(min_region)
            preset["clique_cost"] = (float(gamma), float(eta))
        presets[name] = preset
    if not presets:
        sys.exit(f"{source}: no presets found")
    text = pprint.pformat(presets, sort_dicts=False, width=100)
    out.write_text(f'"""Settings that people publish; made from {source.name}."""\n\nPRESETS = {text}\n')


if __name__ == "__main__":
    main()
