"""Makes the wheel (PEP 517): one module and its metadata. Nothing else is needed, so that it installs
without a network, and nothing is left in the folder."""

import base64
import hashlib
import pathlib
import re
import zipfile

HERE = pathlib.Path(__file__).resolve().parent


def _field(name):
    text = (HERE / "pyproject.toml").read_text(encoding="utf-8")
    return re.search(rf'^{name} = "(.*)"$', text, re.MULTILINE).group(1)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name, version = _field("name"), _field("version")
    info = f"{name}-{version}.dist-info"
    metadata = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        f"Summary: {_field('description')}\nRequires-Python: {_field('requires-python')}\n"
        "License: MIT\nClassifier: License :: OSI Approved :: MIT License\nRequires-Dist: dcrf\n"
    )
    files = {
        f"{name}/__init__.py": (HERE / name / "__init__.py").read_bytes(),
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: dcrf\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), content)
    return wheel
