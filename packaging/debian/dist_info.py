"""dist_info.py VERSION FOLDER: what pip and importlib.metadata read of an installed package, from pyproject.toml."""

import pathlib
import sys
import tomllib

import pyproject_metadata

version, folder = sys.argv[1:]
project = tomllib.loads(pathlib.Path("pyproject.toml").read_text(encoding="utf-8"))
project["project"]["version"] = version
project["project"]["dynamic"] = []
metadata = pyproject_metadata.StandardMetadata.from_pyproject(project, ".")
place = pathlib.Path(folder) / f"dcrf-{version}.dist-info"
place.mkdir(parents=True)
(place / "METADATA").write_bytes(bytes(metadata.as_rfc822()))
(place / "INSTALLER").write_text("debian\n", encoding="utf-8")
