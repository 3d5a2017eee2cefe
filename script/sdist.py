#!/usr/bin/env python3
"""sdist.py FOLDER: the source package for pip, of the clone it is run in; the same bytes every time."""

import gzip
import io
import os
import pathlib
import sys
import tarfile
import tempfile

import mesonpy

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / mesonpy.build_sdist(folder)
    with tarfile.open(path) as archive:
        entries = [(entry, archive.extractfile(entry).read()) for entry in archive if entry.isfile()]
target = pathlib.Path(sys.argv[1]) / path.name
with open(target, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed, tarfile.open(None, "w", packed) as archive:
    for entry, content in sorted(entries, key=lambda pair: pair[0].name):
        plain = tarfile.TarInfo(entry.name)
        plain.size = len(content)
        plain.mode = 0o755 if entry.mode & 0o100 else 0o644
        plain.mtime = int(os.environ["SOURCE_DATE_EPOCH"])
        archive.addfile(plain, io.BytesIO(content))
print(target)
