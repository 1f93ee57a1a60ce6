# SPDX-License-Identifier: Apache-2.0
"""Runs the containers of a pod, as its manifest describes them, in plain namespaces: command, environment, volumes, user,
capabilities, a read-only root, the node's processes or its own. Images are this machine's system with directories added. What a
kubelet does besides (control groups, seccomp, SELinux) is not there.
"""

import contextlib
import pathlib
import shutil
import subprocess
import tempfile

from conftest import BUILD, PROGRAM, Machine, wait_until

# The root to make, whether /proc is the node's, whether the root is read-only; SOURCE TARGET ro|rw of each mount; "--" and the command.
# A container's own /dev/shm has 64 MiB.
ENTER = r"""
PATH=/usr/sbin:/usr/bin:/sbin:/bin
root=$1 pid_host=$2 read_only=$3; shift 3
mount -t tmpfs -o mode=755 tmpfs "$root"
for path in /usr /etc /bin /sbin /lib /lib32 /lib64 /opt; do
    if [ -L "$path" ]; then cp -P "$path" "$root$path"
    elif [ -d "$path" ]; then mkdir -p "$root$path" && mount --rbind "$path" "$root$path"; fi
done
mkdir -p "$root/proc" "$root/sys" "$root/dev/shm" "$root/tmp" "$root/run"
chmod 1777 "$root/tmp"
for device in null zero full random urandom tty; do touch "$root/dev/$device" && mount --bind "/dev/$device" "$root/dev/$device"; done
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=1777,size=64m shm "$root/dev/shm"
if [ "$pid_host" = 1 ]; then mount --rbind /proc "$root/proc"; else mount -t proc proc "$root/proc"; fi
while [ "$1" != -- ]; do
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    [ "$3" = rw ] || mount -o remount,bind,ro "$root$2"
    shift 3
done
shift
[ "$read_only" = 0 ] || mount -o remount,ro "$root"
cd "$root"
exec chroot "$root" "$@"
"""


def image(directory):
    """The /shmguard of the image that deploy/kubernetes/Containerfile makes, with the programs of this build."""
    (directory / "bin").mkdir(parents=True)
    (directory / "libexec" / "shmguard").mkdir(parents=True)
    shutil.copy(PROGRAM, directory / "bin" / "shmguard")
    shutil.copy(BUILD / "libshmguard-preload.so", directory / "libexec" / "shmguard")
    (directory / "bin" / "libshmguard-preload.so").symlink_to("../libexec/shmguard/libshmguard-preload.so")
    for path in [directory, *directory.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755)
    return directory


class Pod:
    """`spec` of a pod, on a machine. `node` has directories of that machine for volumes that are no emptyDir, and `images` what is in the
    images of the containers: image → path → directory."""

    def __init__(self, spec, scratch, images, machine=None, node=()):
        self.spec = spec
        self.scratch = scratch
        self.machine = machine or Machine()
        self.images = images
        self.volumes = {**{volume["name"]: self._empty(volume) for volume in spec.get("volumes", []) if "emptyDir" in volume}, **dict(node)}

    def _empty(self, volume):
        directory = pathlib.Path(tempfile.mkdtemp(prefix=volume["name"], dir=self.scratch))
        directory.chmod(0o777)
        return directory

    def _mounts(self, container):
        for path, source in self.images.get(container["image"].partition(":")[0], {}).items():
            yield source, path, "rw"
        for mount in container.get("volumeMounts", []):
            yield self.volumes[mount["name"]], mount["mountPath"], "ro" if mount.get("readOnly") else "rw"

    def command(self, container, namespaces=("--mount",), entrypoint=(), without=()):
        """The words that start the container. `without`: capabilities that are withheld."""
        own = {**self.spec.get("securityContext", {}), **container.get("securityContext", {})}
        rights = own.get("capabilities", {})
        assert rights.get("drop") == ["ALL"], "the manifests drop all capabilities"
        kept = [f"+{name.lower()}" for name in rights.get("add", []) if name not in without]
        user = own["runAsUser"]
        hardened = ["setpriv", f"--reuid={user}", f"--regid={own.get('runAsGroup', user)}", "--clear-groups", "--inh-caps=-all",
                    f"--bounding-set={','.join(['-all', *kept])}"]
        if own.get("allowPrivilegeEscalation") is False:
            hardened.append("--no-new-privs")
        environment = {"PATH": "/shmguard/bin:/usr/bin:/bin", "HOME": "/"}
        for variable in container.get("env", []):
            environment[variable["name"]] = variable["value"] if "value" in variable else self.field(variable["valueFrom"])
        words = [*(container.get("command") or entrypoint), *container.get("args", [])]
        root = tempfile.mkdtemp(dir=self.scratch)
        host = self.spec.get("hostPID", False)
        mounts = [str(word) for mount in self._mounts(container) for word in mount]
        return ["unshare", "--propagation", "private", *namespaces, *([] if host else ["--pid", "--fork", "--kill-child"]),
                "sh", "-euc", ENTER, "sh", root, "1" if host else "0", "1" if own.get("readOnlyRootFilesystem") else "0", *mounts, "--",
                "env", "-i", *(f"{name}={value}" for name, value in environment.items()), *hardened, *words]

    @staticmethod
    def field(source):
        return {"spec.nodeName": "node-17"}[source["fieldRef"]["fieldPath"]]

    def containers(self, kind="containers"):
        return {container["name"]: container for container in self.spec.get(kind, [])}

    def run(self, container, **kwargs):
        return self.machine.run(*self.command(container, **kwargs), text=True, timeout=120)

    def prepare(self):
        """The init containers, one after the other, as a kubelet does."""
        for container in self.containers("initContainers").values():
            done = self.run(container)
            assert done.returncode == 0, (container["name"], done)

    @contextlib.contextmanager
    def running(self, container, **kwargs):
        """The container with a network of its own. Yields a function that asks it by HTTP, as a probe does: status, body."""
        words = self.command(container, namespaces=("--mount", "--net"), **kwargs)
        words[words.index("-euc") + 1] = "ip link set lo up\n" + ENTER
        process = self.machine.popen(*words, stderr=subprocess.PIPE, text=True)
        port = container["ports"][0]["containerPort"]

        def ask(path, token=None):
            code = ("import sys, urllib.request, urllib.error\n"
                    "request = urllib.request.Request(sys.argv[1])\n"
                    "if sys.argv[2]: request.add_header('Authorization', 'Bearer ' + sys.argv[2])\n"
                    "try: answer = urllib.request.urlopen(request, timeout=20)\n"
                    "except urllib.error.HTTPError as error: answer = error\n"
                    "except OSError: sys.exit(3)\n"
                    "print(answer.status); print(answer.read().decode(), end='')\n")
            asked = subprocess.run(["nsenter", "-t", str(process.pid), "-n", "/usr/bin/python3", "-c", code,
                                    f"http://127.0.0.1:{port}{path}", token or ""], capture_output=True, text=True, timeout=60, check=False)
            status, _, body = asked.stdout.partition("\n")
            return (int(status), body) if asked.returncode == 0 else (0, asked.stderr)

        try:
            wait_until(lambda: process.poll() is not None or ask("/healthz")[0] == 200, "the container is ready")
            assert process.poll() is None, process.stderr.read()
            yield ask
        finally:
            process.kill()
            process.communicate()


TOKEN = "0123456789abcdef0123456789abcdef"


def serve_pod(spec, scratch, images, machine):
    """The pod of the DaemonSet on a machine, with its Secret."""
    token = scratch / "token"
    token.mkdir()
    (token / "token").write_text(TOKEN)
    (token / "token").chmod(0o400)
    return Pod(spec, scratch, images, machine, node={"token": token, "shm": "/dev/shm"})
