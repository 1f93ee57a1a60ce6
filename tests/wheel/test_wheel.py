# SPDX-License-Identifier: Apache-2.0
"""What scripts/test-wheel has built, as people get and use it. DIST has the files, AGAIN those of a second build elsewhere, ROOTS fresh
systems, and GUARD_TESTS the programs of tests/guard for aarch64."""
import base64
import csv
import glob
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile

import pytest

REPOSITORY = pathlib.Path(__file__).parents[2]
INSTALLED = REPOSITORY / "tests/installed"
DIST, AGAIN, ROOTS, GUARD_TESTS = (pathlib.Path(os.environ[name]) for name in ("DIST", "AGAIN", "ROOTS", "GUARD_TESTS"))
VERSION = re.search(r"version: '(.*)'", (REPOSITORY / "meson.build").read_text()).group(1)
ARCHITECTURES = ["x86_64", "aarch64"]
PYTHONS = [sys.executable, *sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python")))]
SUITES = ["bullseye", "bookworm", "trixie", "sid"]
PIP_ANY_TAG = (19, 3)  # the first that knows manylinux2014


def wheel(architecture="x86_64"):
    found, = DIST.glob(f"shmguard-{VERSION}-py3-none-*_{architecture}.whl")
    return found


def tools():
    """uv and pipx."""
    directory = ROOTS / "tools"
    if not (directory / "bin/pipx").exists():
        venv.create(directory, clear=True, with_pip=True)
        run(directory / "bin/pip", "install", "--quiet", "uv==0.9.9", "pipx==1.8.0")
    return directory / "bin"


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False, timeout=600,
                          **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


def use(python, *command, **options):
    print(run(python, INSTALLED / "use.py", *command, **options))


def pip_of(python, directory):
    """A virtual environment whose pip knows the tags of the wheel."""
    run(python, "-m", "venv", directory)
    pip = directory / "bin/pip"
    version = tuple(map(int, re.search(r"pip (\d+)\.(\d+)", run(pip, "--version")).groups()))
    if version < PIP_ANY_TAG:
        run(pip, "install", "--quiet", "pip==21.3.1")
    return pip


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_wheel_has_what_it_records(architecture):
    with zipfile.ZipFile(wheel(architecture)) as archive:
        names = set(archive.namelist())
        info = f"shmguard-{VERSION}.dist-info"
        rows = list(csv.reader(io.StringIO(archive.read(f"{info}/RECORD").decode())))
        assert {row[0] for row in rows} == names
        for name, digest, size in rows[:-1]:
            data = archive.read(name)
            assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert int(size) == len(data)
        metadata = archive.read(f"{info}/METADATA").decode()
        assert f"\nVersion: {VERSION}\n" in metadata and "Requires-Dist" not in metadata
        assert set(re.findall(r"License-File: (.*)", metadata)) == {name.split("/licenses/")[1] for name in names if "/licenses/" in name}
        assert {"shmguard/py.typed", "shmguard/libshmguard.so", "shmguard/auto.py"} <= names and "shmguard/meson.build" not in names
        bill = json.loads(archive.read(f"{info}/sboms/shmguard.cdx.json"))
        program = hashlib.sha256(archive.read(f"shmguard-{VERSION}.data/scripts/shmguard")).hexdigest()
    parts = {part["name"]: part for part in bill["components"]}
    assert {"jansson", "libmicrohttpd", "ncurses", "sqlite", "uplot", "ziglang"} <= set(parts)
    assert parts["bin/shmguard"]["hashes"][0]["content"] == program


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_files_are_hardened_and_need_only_an_old_glibc(architecture, tmp_path):
    with tarfile.open(DIST / f"shmguard-{VERSION}-linux-{architecture}.tar.xz") as archive:
        archive.extractall(tmp_path)
    run(REPOSITORY / "packaging/check.py", tmp_path / f"shmguard-{VERSION}-linux-{architecture}", architecture, "2.17")


def test_check_finds_faults(tmp_path):
    """A program built without any of this, and a library with other exports."""
    source = tmp_path / "bad.c"
    source.write_text("#define _GNU_SOURCE\n#include <threads.h>\nint main(void) { return thrd_sleep(0, 0); }\n")
    program, library, api = tmp_path / "bin/shmguard", tmp_path / "libexec/shmguard/libshmguard-preload.so", tmp_path / "lib/libshmguard.so.1"
    for path in program, library, api:
        path.parent.mkdir(parents=True)
    run("cc", "-no-pie", "-fno-stack-protector", "-Wl,-z,norelro,-z,lazy,-z,execstack,-rpath,/opt", "-o", program, source)
    for path in library, api:
        run("cc", "-shared", "-fPIC", "-o", path, source)
    done = subprocess.run([REPOSITORY / "packaging/check.py", tmp_path, "x86_64", "2.17"], stderr=subprocess.PIPE, universal_newlines=True, check=False)
    assert done.returncode == 1
    for fault in ("is not position-independent", "has no RELRO", "binds symbols late", "has an executable stack", "has an RPATH", "has no stack protector",
                  "needs glibc 2.", "has no fortified calls"):
        assert f"check: bin/shmguard {fault}" in done.stderr
    assert "check: lib/libshmguard.so.1 exports main\n" in done.stderr
    assert "libshmguard-preload.so differs from tests/guard/exports.list in shm_open" in done.stderr


def test_second_build_gives_the_same_bytes():
    def digests(directory):
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.iterdir() if path.is_file()}
    again = digests(AGAIN)
    assert again and again == {name: digest for name, digest in digests(DIST).items() if name in again}


@pytest.mark.parametrize("python", PYTHONS)
def test_virtual_environment(python, tmp_path):
    pip = pip_of(python, tmp_path / "env")
    here = tmp_path / "env/bin"
    run(pip, "install", "--no-index", wheel())
    use(here / "python", here / "shmguard")
    use(here / "python", here / "python", "-m", "shmguard")
    run(pip, "uninstall", "--yes", "shmguard")
    assert not list((tmp_path / "env").rglob("*shmguard*"))


def test_user_target_and_prefix(tmp_path):
    pip = pip_of("/usr/bin/python3", tmp_path / "env")
    python = tmp_path / "env/bin/python"
    home = {**os.environ, "HOME": str(tmp_path / "home")}
    run("/usr/bin/python3", "-m", "pip", "install", "--no-index", "--user", "--break-system-packages", wheel(), env=home)
    use(python, tmp_path / "home/.local/bin/shmguard")
    use(python, "/usr/bin/python3", "-m", "shmguard", env=home)
    run(pip, "install", "--no-index", "--target", tmp_path / "target", wheel())
    use(python, tmp_path / "target/bin/shmguard")
    use(python, python, "-m", "shmguard", env={**os.environ, "PYTHONPATH": str(tmp_path / "target")})
    run(pip, "install", "--no-index", "--prefix", tmp_path / "prefix", wheel())
    use(python, tmp_path / "prefix/bin/shmguard")


def test_prefix_of_its_own(tmp_path):
    """As in a conda environment: Python lies in the prefix that the wheel is installed into."""
    interpreter = pathlib.Path(PYTHONS[-1])
    prefix = tmp_path / "prefix"
    shutil.copytree(interpreter.parents[1], prefix, symlinks=True)
    python = prefix / "bin/python"
    run(python, "-m", "pip", "install", "--no-index", wheel())
    use(python, prefix / "bin/shmguard")
    use(python, python, "-m", "shmguard")
    run(python, "-m", "pip", "uninstall", "--yes", "shmguard")
    assert not list(prefix.rglob("*shmguard*"))


def test_uv_and_pipx(tmp_path):
    bin_ = tools()
    env = {**os.environ, "HOME": str(tmp_path), "PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "pipx-bin"),
           "UV_TOOL_BIN_DIR": str(tmp_path / "uv-bin"), "UV_TOOL_DIR": str(tmp_path / "uv"), "UV_OFFLINE": "1", "UV_PYTHON_DOWNLOADS": "never"}
    run(bin_ / "pipx", "install", "--python", "/usr/bin/python3", wheel(), env=env)
    use("/usr/bin/python3", tmp_path / "pipx-bin/shmguard")
    assert os.listdir(tmp_path / "pipx-bin") == ["shmguard"]
    run(bin_ / "uv", "venv", "--python", "/usr/bin/python3", tmp_path / "env", env=env)
    run(bin_ / "uv", "pip", "install", "--python", tmp_path / "env/bin/python", wheel(), env=env)
    use("/usr/bin/python3", tmp_path / "env/bin/shmguard")
    use("/usr/bin/python3", tmp_path / "env/bin/python", "-m", "shmguard")
    run(bin_ / "uv", "tool", "install", "--python", "/usr/bin/python3", f"shmguard @ {wheel().as_uri()}", env=env)
    use("/usr/bin/python3", tmp_path / "uv-bin/shmguard")


def test_archive_anywhere(tmp_path):
    top = f"shmguard-{VERSION}-linux-x86_64"
    with tarfile.open(DIST / f"{top}.tar.xz") as archive:
        archive.extractall(tmp_path)
    (tmp_path / top).rename(tmp_path / "moved")
    use("/usr/bin/python3", tmp_path / "moved/bin/shmguard")


def test_sdist_builds(tmp_path):
    pip = pip_of("/usr/bin/python3", tmp_path / "env")
    run(pip, "install", "--quiet", DIST / f"shmguard-{VERSION}.tar.gz")
    use("/usr/bin/python3", tmp_path / "env/bin/shmguard")
    use("/usr/bin/python3", tmp_path / "env/bin/python", "-m", "shmguard")


@pytest.mark.parametrize("suite", SUITES)
def test_fresh_system(suite):
    root = ROOTS / suite
    there = root / "opt/shmguard"
    shutil.rmtree(there, ignore_errors=True)
    there.mkdir(parents=True)
    for path in (wheel(), INSTALLED / "use.py", INSTALLED / "job.py"):
        shutil.copy(path, there)
    print(run(REPOSITORY / "scripts/inside", root, f"""cd /opt/shmguard && python3 -m venv env && env/bin/pip install --no-index {wheel().name} &&
        python3 use.py env/bin/shmguard && python3 use.py env/bin/python -m shmguard"""))


def test_musl_declines(tmp_path):
    pip = pip_of("/usr/bin/python3", tmp_path / "env")
    done = subprocess.run([pip, "install", "--no-index", "--target", tmp_path / "target", "--platform", "musllinux_1_2_x86_64", "--only-binary", ":all:",
                           wheel()], stderr=subprocess.PIPE, universal_newlines=True, check=False)
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if line] == [f"ERROR: {wheel().name} is not a supported wheel on this platform."]

    # Copied there all the same: the kernel finds no dynamic linker for the program.
    run(pip, "install", "--no-index", "--target", tmp_path / "target", wheel())
    program = tmp_path / "target/bin/shmguard"
    program.write_bytes(program.read_bytes().replace(b"/lib64/ld-linux-x86-64.so.2\0", b"/lib64/no-linux-x86-64.so.2\0"))
    done = subprocess.run([tmp_path / "env/bin/python", "-m", "shmguard", "doctor"], cwd=tmp_path / "target", stderr=subprocess.PIPE, universal_newlines=True,
                          check=False)
    assert done.returncode == 69
    assert done.stderr == "shmguard: this program needs glibc, and this system has another C library (musl?)\n"


def test_musl_program_is_left_alone(tmp_path):
    top = f"shmguard-{VERSION}-linux-x86_64"
    with tarfile.open(DIST / f"{top}.tar.xz") as archive:
        archive.extractall(tmp_path)
    source = tmp_path / "hello.c"
    source.write_text('#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n')
    for options in [], ["-static"]:
        run("musl-gcc", *options, "-o", tmp_path / "hello", source)
        for command in [tmp_path / "hello"], ["sh", "-c", tmp_path / "hello"], [sys.executable, "-c", f"import os; os.execl('{tmp_path}/hello', 'hello')"]:
            assert run(tmp_path / top / "bin/shmguard", "run", "--quiet", "--", *command) == "hello\n"


def on_aarch64(command, *files):
    root = ROOTS / "arm64"
    there = root / "opt/shmguard"
    shutil.rmtree(there, ignore_errors=True)
    there.mkdir(parents=True)
    with tarfile.open(DIST / f"shmguard-{VERSION}-linux-aarch64.tar.xz") as archive:
        archive.extractall(there)
    for path in files:
        shutil.copy(path, there)
    return run(REPOSITORY / "scripts/inside", root, f"cd /opt/shmguard && {command}")


def test_program_on_aarch64():
    top = f"shmguard-{VERSION}-linux-aarch64"
    print(on_aarch64(f"python3 use.py {top}/bin/shmguard", INSTALLED / "use.py", INSTALLED / "job.py"))
    on_aarch64(f"python3 -c 'import ctypes; ctypes.CDLL(\"{top}/lib/libshmguard.so.1\").shmguard_version'")


def test_pytorch_on_aarch64():
    print(on_aarch64(f"""export PYTHONPATH=/opt/torch PYTHONDONTWRITEBYTECODE=1; python3 -W error -c 'import torch' &&
        python3 use.py shmguard-{VERSION}-linux-aarch64/bin/shmguard""", INSTALLED / "use.py", INSTALLED / "job.py"))


# What qemu does not let pass: it calls a program by its file, not by the name that it was started by; and the kernel cannot hand it a
# program whose descriptor closes at exec (fexecve).
@pytest.mark.parametrize("program, arguments, environment, known", [
    ("test-guard", "", "", set()),
    ("test-witness", "", "", {"test_faults"}),
    ("test-exec", "alone", "", {"test_left_alone"}),
    ("test-exec", "", "SHMGUARD_SOCKET=nobody-listens SHMGUARD_ONLY_WITNESS=1 SHMGUARD_PIN=off",
     {"test_every_way", "test_no_environment_at_all", "test_errors_are_the_real_calls"}),
])
def test_guard_on_aarch64(program, arguments, environment, known):
    library = f"/opt/shmguard/shmguard-{VERSION}-linux-aarch64/libexec/shmguard/libshmguard-preload.so"
    text = on_aarch64(f"{{ env LD_PRELOAD={library} {environment} ./{program} {arguments} 2>&1 || true; }}", GUARD_TESTS / "aarch64" / program)
    ran = int(re.search(r"(\d+) test\(s\) run", text).group(1))
    failed = set(re.findall(r"\[  FAILED  \] (test_\w+)", text))
    assert failed == known, text
    print(f"{program} {arguments}: {ran - len(failed)} of {ran} passed")
