#!/usr/bin/env python3
"""Check the links of the built site and of the repository's own pages: files and anchors, without a network.

python3 docs/site/check_links.py SITE
"""
import html.parser
import pathlib
import re
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.targets, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors.update(filter(None, (attributes.get("id"), attributes.get("name") if tag == "a" else None)))
        for key in ("href", "src"):
            if attributes.get(key) is not None:
                self.targets.append(attributes[key])


def problems_of_site(site):
    pages = {path.resolve(): Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for target in page.targets:
            address = urllib.parse.urlsplit(target)
            if address.scheme == "data" or target in ("", "#"):
                continue
            if address.scheme or address.netloc:
                if not target.startswith(("https://", "mailto:")):
                    yield f"{path.name}: {target}"
                continue
            other = (path.parent / urllib.parse.unquote(address.path)).resolve() if address.path else path
            if not other.exists():
                yield f"{path.relative_to(site.resolve())}: there is no {target}"
            elif address.fragment and other in pages and urllib.parse.unquote(address.fragment) not in pages[other].anchors:
                yield f"{path.relative_to(site.resolve())}: no such place: {target}"


def problems_of_markdown():
    """Links between files of the repository; those of docs/ to pages are checked in the site, with their anchors."""
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "NEWS.md", ROOT / "web/README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
            plain = target.split("#")[0]
            if plain and "://" not in plain and "made/" not in plain and not (path.parent / plain).exists():
                if pathlib.Path(plain).name != "command.md":  # generated
                    yield f"{path.relative_to(ROOT)}: there is no {target}"


def main():
    problems = [*problems_of_site(pathlib.Path(sys.argv[1])), *problems_of_markdown()]
    print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
