# SPDX-License-Identifier: Apache-2.0
"""Packs the files of a release: pack.py wheel|dist PREFIX SOURCES ARCHITECTURE GLIBC OUT

The same files give the same bytes: names are sorted, and every time stamp is SOURCE_DATE_EPOCH."""
import base64
import hashlib
import io
import json
import os
import pathlib
import re
import sys
import tarfile
import time
import tomllib
import zipfile

import pyproject_metadata

ROOT = pathlib.Path(__file__).parent.parent
EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
VERSION = re.search(r"^ *version: '(.*)',$", (ROOT / "meson.build").read_text(), re.M).group(1)
PROGRAM = "bin/shmguard"
LIBRARY = "libexec/shmguard/libshmguard-preload.so"
API = "lib/libshmguard.so.1"
# Manual pages and completions.
FOR_PEOPLE = ("share/man/man1/*", "share/bash-completion/completions/*", "share/zsh/site-functions/*", "share/fish/vendor_completions.d/*")


def linked(sources):
    """What is linked into the program: name, version, license, where it is from, its hash or None, and the text of its license."""
    texts = {"jansson": "LICENSE", "libmicrohttpd": "COPYING", "ncurses": "COPYING", "sqlite": "LICENSE.md"}
    for line in (ROOT / "packaging/sources").read_text().splitlines():
        name, version, license_id, file, digest = line.split() if line[0] != "#" else ("",) * 5
        if name in texts:
            yield name, version, license_id, f"pkg:generic/{name}@{version}", digest, (sources / f"{name}-{version}" / texts[name]).read_bytes()
    requirement = re.search(r"^ziglang==(\S+)", (ROOT / "packaging/requirements.txt").read_text(), re.M)
    yield "ziglang", requirement.group(1), "MIT", f"pkg:pypi/ziglang@{requirement.group(1)}", None, None  # its start files and compiler-rt
    chart = ROOT / "web/node_modules/uplot"
    if chart.exists():
        package = json.loads((chart / "package.json").read_text())
        yield "uplot", package["version"], package["license"], f"pkg:npm/uplot@{package['version']}", None, (chart / "LICENSE").read_bytes()


def bill_of_materials(files, parts):
    """CycloneDX 1.6."""
    def sha256(digest):
        return [{"alg": "SHA-256", "content": digest}]
    libraries = [{"type": "library", "bom-ref": where, "name": name, "version": version, "purl": where,
                  "licenses": [{"license": {"id": license_id}}], **({"hashes": sha256(digest)} if digest else {})}
                 for name, version, license_id, where, digest, _ in parts]
    binaries = [{"type": "file", "bom-ref": path, "name": path, "hashes": sha256(hashlib.sha256(files[path]).hexdigest())}
                for path in (PROGRAM, LIBRARY, API)]
    me = f"pkg:pypi/shmguard@{VERSION}"
    return json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH)),
            "component": {"type": "application", "bom-ref": me, "name": "shmguard", "version": VERSION, "purl": me,
                          "licenses": [{"license": {"id": "Apache-2.0"}}]},
        },
        "components": libraries + binaries,
        "dependencies": [{"ref": me, "dependsOn": [part["bom-ref"] for part in libraries]}],
    }, indent=2).encode() + b"\n"


def metadata(licenses):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    standard = pyproject_metadata.StandardMetadata.from_pyproject(project, ROOT)
    standard.version = pyproject_metadata.packaging.version.Version(VERSION)
    standard.license_files = list(map(pathlib.Path, licenses))
    return bytes(standard.as_rfc822())


def write_wheel(path, files, licenses, bill, tags):
    info = f"shmguard-{VERSION}.dist-info"
    members = {
        f"shmguard-{VERSION}.data/scripts/shmguard": files[PROGRAM],
        f"shmguard-{VERSION}.data/data/{LIBRARY}": files[LIBRARY],
        **{f"shmguard-{VERSION}.data/data/{name}": data for name, data in files.items() if name.startswith("share/")},
        "shmguard/libshmguard.so": files[API],
        **{f"shmguard/{source.name}": source.read_bytes() for source in sorted((ROOT / "python/shmguard").iterdir())
           if source.suffix in (".py", ".typed")},
        f"{info}/METADATA": metadata(licenses),
        f"{info}/WHEEL": "".join(["Wheel-Version: 1.0\nGenerator: shmguard packaging\nRoot-Is-Purelib: false\n",
                                  *(f"Tag: py3-none-{tag}\n" for tag in tags)]).encode(),
        **{f"{info}/licenses/{name}": text for name, text in licenses.items()},
        f"{info}/sboms/shmguard.cdx.json": bill,
    }
    record = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
                     for name, data in members.items()) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, data in {**members, f"{info}/RECORD": record.encode()}.items():
            member = zipfile.ZipInfo(name, time.gmtime(EPOCH)[:6])
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            wheel.writestr(member, data)


def write_archive(path, files, licenses, bill, top):
    members = {
        **files,
        "include/shmguard.h": (ROOT / "include/shmguard.h").read_bytes(),
        "share/doc/shmguard/README.md": (ROOT / "README.md").read_bytes(),
        "share/doc/shmguard/shmguard.cdx.json": bill,
        **{f"share/doc/shmguard/licenses/{name}": text for name, text in licenses.items()},
    }
    with tarfile.open(path, "w:xz") as archive:
        for name, data in sorted(members.items()):
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size, member.mtime, member.mode = len(data), EPOCH, 0o755 if name == PROGRAM else 0o644
            archive.addfile(member, io.BytesIO(data))


def main(kind, prefix, sources, architecture, glibc, out):
    prefix = pathlib.Path(prefix)
    texts = sorted(str(path.relative_to(prefix)) for pattern in FOR_PEOPLE for path in prefix.glob(pattern))
    files = {name: (prefix / name).read_bytes() for name in (PROGRAM, LIBRARY, API, *texts)}
    parts = list(linked(pathlib.Path(sources)))
    licenses = {"LICENSE": (ROOT / "LICENSE").read_bytes(), **{f"{part[0]}-LICENSE": part[-1] for part in parts if part[-1]}}
    bill = bill_of_materials(files, parts)
    if kind == "wheel":
        tags = [f"manylinux_{glibc.replace('.', '_')}_{architecture}"]
        tags += [f"manylinux2014_{architecture}"] if glibc == "2.17" else []  # its name for pip before 20.3
        path = pathlib.Path(out, f"shmguard-{VERSION}-py3-none-{'.'.join(tags)}.whl")
        write_wheel(path, files, licenses, bill, tags)
    else:
        top = f"shmguard-{VERSION}-linux-{architecture}"
        path = pathlib.Path(out, f"{top}.tar.xz")
        write_archive(path, files, licenses, bill, top)
    print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
