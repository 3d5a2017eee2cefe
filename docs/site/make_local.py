#!/usr/bin/env python3
"""Make the built site work from file://: python3 docs/site/make_local.py SITE

Debian's furo loads a style sheet from its web server and has a script that is a module; browsers load neither from a file.
"""
import pathlib
import re
import shutil
import sys


def main(site):
    static = site / "_static"
    for sheet in (static / "styles").glob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        if "/javascript/normalize.css/" in text:
            shutil.copy("/usr/share/javascript/normalize.css/normalize.css", static / "styles" / "normalize.css")
            sheet.write_text(text.replace("/javascript/normalize.css/normalize.css", "normalize.css"), encoding="utf-8")
    gumshoe, furo = static / "scripts" / "gumshoe-patched.js", static / "scripts" / "furo.js"
    if gumshoe.exists():
        spy = re.sub(r"^export default.*$", "", gumshoe.read_text(encoding="utf-8"), flags=re.M)
        rest = re.sub(r"^import .*$", "", furo.read_text(encoding="utf-8"), flags=re.M)
        furo.write_text(f"(function () {{\n{spy}\n{rest}\n}})();\n", encoding="utf-8")
        gumshoe.unlink()
    left = [path for path in static.rglob("*.css") if re.search(r"url\(/", path.read_text(encoding="utf-8"))]
    left += [path for path in static.rglob("*.js") if re.search(r"^(import|export) ", path.read_text(encoding="utf-8"), re.M)]
    if left:
        sys.exit(f"not usable from a file: {left}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
