# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes: valid, in step with the program, with few rights; and what its pods run, run for real."""

import json
import re
import shlex
import shutil
import subprocess

import pytest

from conftest import NOBODY, PROJECT, PYTHONS, TRAIN, Machine, as_user, mount_namespace, needs_root, open_to_all
from manifests import DEPLOY, DIRECTORIES, PODS, admitted, built, canonical, containers, load, mutated, package, pod_specs, sample
from pod import TOKEN, Pod, image, serve_pod
from test_bad_input import COMMANDS, options_of

RELEASES = ["1.35", "1.36", "1.37"]
LIBRARY = "/shmguard/libexec/shmguard/libshmguard-preload.so"
VERSION = re.search(r"^ *version: '(.*)',$", (PROJECT / "meson.build").read_text(), re.M).group(1)


def everything():
    return [(name, thing) for name in DIRECTORIES for thing in built(name)]


def by_kind(name, kind):
    found, = [thing for thing in built(name) if thing["kind"] == kind]
    return found


def pod_spec(name, kind):
    spec, = pod_specs(by_kind(name, kind))
    return spec


# --- Shapes ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
def test_the_schemas_of_three_releases_accept_them(release):
    """Strictly: a field that the release does not know is an error. PodMonitor and ClusterPolicy are no part of Kubernetes."""
    validator = package("kubernetes_validate")
    kinds = set()
    for name, thing in everything():
        if thing["apiVersion"].split("/")[0] in ("monitoring.coreos.com", "kyverno.io"):
            continue
        if name == "guard" and release == "1.35":
            with pytest.raises(validator.SchemaNotFoundError):
                validator.validate(thing, release, strict=True)  # stable since 1.36
            continue
        assert validator.validate(thing, release, strict=True) == release
        kinds.add(thing["kind"])
    assert kinds >= {"DaemonSet", "Deployment", "Job", "Namespace", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}


def test_a_wrong_field_is_noticed():
    validator = package("kubernetes_validate")
    thing = by_kind("serve", "DaemonSet")
    thing["spec"]["template"]["spec"]["hostPid"] = True
    with pytest.raises(validator.ValidationError):
        validator.validate(thing, RELEASES[-1], strict=True)


@pytest.mark.parametrize("name", DIRECTORIES)
def test_every_file_is_listed(name):
    kustomization, = load(DEPLOY / name / "kustomization.yaml")
    files = {path.name for path in (DEPLOY / name).glob("*.yaml")} - {"kustomization.yaml"}
    listed = kustomization["resources"] + kustomization.get("configurations", [])
    assert files == {entry for entry in listed if entry.endswith(".yaml")}
    assert f"deploy/kubernetes/{name}" in (PROJECT / "docs" / "kubernetes.md").read_text()


@pytest.mark.parametrize("name", DIRECTORIES)
def test_kustomize_builds_the_same(name, tmp_path):
    kubectl = shutil.which("kubectl")
    version = kubectl and subprocess.run([kubectl, "version", "--client"], capture_output=True, text=True, check=False).stdout
    if not version or not (found := re.search(r"Kustomize Version: v(\d+)", version)) or int(found.group(1)) < 5:
        pytest.skip("no kubectl with kustomize 5 or later")
    copied = shutil.copytree(DEPLOY, tmp_path / "kubernetes")
    (copied / "serve" / "token").write_text("0123456789abcdef")
    done = subprocess.run([kubectl, "kustomize", copied / name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = [thing for thing in package("yaml").safe_load_all(done.stdout) if thing["kind"] != "Secret"]
    # The names of Secrets get a suffix from their content, also where a PodMonitor names one.
    text = re.sub(r"shmguard-serve-\w{10}\b", "shmguard-serve", json.dumps(made))
    assert "shmguard-serve-" not in text
    named = {(thing["kind"], thing["metadata"]["name"]): thing for thing in json.loads(text)}
    assert len(named) == len(built(name))
    for thing in built(name):
        other = named[thing["kind"], thing["metadata"]["name"]]
        other["metadata"].pop("namespace", None)
        assert other == thing


def commands_in(text):
    """Each `shmguard COMMAND` with its options."""
    for line in re.sub(r"\\\n", " ", text).splitlines():
        for command, rest in re.findall(rf"\bshmguard ({'|'.join(COMMANDS)})\b([^`;|]*)", line):
            yield command, re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest.split(" -- ")[0])


def test_options_exist():
    told = [found for path in [*DEPLOY.glob("*/*.yaml"), DEPLOY / "Containerfile", PROJECT / "docs" / "kubernetes.md"]
            for found in commands_in(path.read_text())]
    for _, thing in everything():
        for container in containers(thing):
            told += commands_in(" ".join([*container.get("command", []), *container.get("args", [])]))
    assert {command for command, _ in told} >= {"serve", "clean", "plan", "run"}
    assert ("serve", ["--listen", "--token-file"]) in told
    assert [(command, option) for command, options in told for option in options if option not in options_of(command)] == []


def test_images_name_this_version():
    for path in [*DEPLOY.glob("*/*.yaml"), DEPLOY / "Containerfile"]:
        text = path.read_text()
        assert set(re.findall(r"shmguard:(\d+\.\d+\.\d+)|newTag: (.*)", text)) <= {(VERSION, ""), ("", VERSION)}, path


def test_rights():
    """What every container gives up, and what serve alone has."""
    for _, thing in everything():
        for spec in pod_specs(thing):
            assert spec["automountServiceAccountToken"] is False
            for container in spec.get("initContainers", []) + spec["containers"]:
                own = {**spec.get("securityContext", {}), **container["securityContext"]}
                assert own["allowPrivilegeEscalation"] is False and own["readOnlyRootFilesystem"] is True
                assert own["seccompProfile"] == {"type": "RuntimeDefault"} and own["capabilities"]["drop"] == ["ALL"]
                serves = container["name"] == "serve"
                assert serves == ("add" in own["capabilities"]) == bool(spec.get("hostPID"))
                assert serves or own["runAsNonRoot"] is True and own["runAsUser"] > 0
                assert "privileged" not in own
            assert not spec.get("hostNetwork") and not spec.get("hostIPC")
    assert pod_spec("serve", "DaemonSet")["containers"][0]["volumeMounts"][1] == {"name": "shm", "mountPath": "/dev/shm", "readOnly": True}


# --- Injection ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PODS)
def test_policies(name):
    """Both policies make the same of a pod, and only of the container that is named."""
    before = sample(name)
    after = admitted(by_kind("guard", "MutatingAdmissionPolicy"), sample(name))
    assert canonical(mutated(by_kind("guard-kyverno", "ClusterPolicy"), sample(name))) == canonical(after)
    if name in ("other-name", "guarded-by-hand", "no-label"):
        assert after == before
        return
    guarded = {container["name"]: container for container in after["spec"]["containers"]}
    for container in before["spec"]["containers"]:
        if container["name"] != "train":
            assert guarded[container["name"]] == container
            continue
        changed = guarded["train"]
        assert changed["volumeMounts"] == container.get("volumeMounts", []) + [{"name": "shmguard", "mountPath": "/shmguard", "readOnly": True}]
        environment = {entry["name"]: entry.get("value") for entry in container.get("env", [])}
        if container.get("command"):
            assert changed["command"] == ["/shmguard/bin/shmguard", "run", "--", *container["command"]]
        elif name == "preload":
            environment["LD_PRELOAD"] = f"{LIBRARY}:/usr/lib/libjemalloc.so.2"
        elif name != "preload-from":
            environment["LD_PRELOAD"] = LIBRARY
        assert {entry["name"]: entry.get("value") for entry in changed.get("env", [])} == environment
        untouched = {"command", "env", "volumeMounts"} if container.get("command") else {"env", "volumeMounts"}
        assert {k: v for k, v in changed.items() if k not in untouched} == {k: v for k, v in container.items() if k not in untouched}
    *others, copies = after["spec"]["initContainers"]
    assert others == before["spec"].get("initContainers", [])
    assert copies["resources"]["requests"] == copies["resources"]["limits"], "a pod that is Guaranteed stays so"
    again = admitted(by_kind("guard", "MutatingAdmissionPolicy"), after)
    assert again == after
    validator = package("kubernetes_validate")
    for release in RELEASES:
        validator.validate(after, release, strict=True)


# --- For real -------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def scratch(tmp_path):
    open_to_all(tmp_path)
    return tmp_path


@pytest.fixture
def images(scratch):
    workspace = scratch / "workspace"
    workspace.mkdir()
    shutil.copy(TRAIN, workspace / "train.py")
    return {"shmguard": {"/shmguard": image(scratch / "image")}, "train": {"/workspace": workspace}}


def pod_with(container, **spec):
    """A pod that asks for the guard, with the rights of the Job."""
    job = pod_spec("train", "Job")
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"shmguard/container": "train"}},
            "spec": {"securityContext": job["securityContext"], "containers": [{
                "name": "train", "image": "train", "securityContext": job["containers"][0]["securityContext"],
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}], **container}],
                     "volumes": [{"name": "tmp", "emptyDir": {}}], **spec}}


BIG = ["--batch", "64", "--side", "512", "--workers", "2", "--steps", "4"]  # 48 MiB in a batch: more than 64 MiB on the way


@needs_root
@pytest.mark.slow
@pytest.mark.parametrize("declared", [True, False], ids=["command", "entrypoint"])
def test_an_injected_training(declared, scratch, images):
    """It dies in the 64 MiB of a container, and does not with what the policy adds."""
    words = ["/usr/bin/python3", "-W", "ignore", "/workspace/train.py"]
    plain = pod_with({"command": words, "args": BIG} if declared else {"args": BIG})
    entrypoint = () if declared else words
    (scratch / "plain").mkdir()
    unguarded = Pod(plain["spec"], scratch / "plain", images)
    died = unguarded.run(unguarded.containers()["train"], entrypoint=entrypoint)
    assert died.returncode != 0 and "us error" in died.stderr, died

    guarded = admitted(by_kind("guard", "MutatingAdmissionPolicy"), plain)
    (scratch / "guarded").mkdir()
    pod = Pod(guarded["spec"], scratch / "guarded", images)
    pod.prepare()
    container = pod.containers()["train"]
    done = pod.run(container, entrypoint=entrypoint)
    assert done.returncode == 0 and "finished 4 steps" in done.stdout, done
    assert ("shmguard: " in done.stderr) == declared, done.stderr  # the summary of run
    # The library alone does not change how anything else ends.
    assert pod.run({**container, "args": ["-c", "raise SystemExit(7)"]}, entrypoint=words[:1]).returncode == (7 if not declared else 2)


@needs_root
def test_the_init_container_needs_no_rights(scratch, images):
    guarded = admitted(by_kind("guard", "MutatingAdmissionPolicy"), pod_with({"command": ["true"]}))
    pod = Pod(guarded["spec"], scratch, images)
    pod.prepare()
    copied = pod.volumes["shmguard"]
    for path in ("bin/shmguard", "libexec/shmguard/libshmguard-preload.so"):
        assert (copied / path).stat().st_uid == NOBODY and (copied / path).read_bytes() == (scratch / "image" / path).read_bytes()
    assert pod.run(pod.containers()["train"]).returncode == 0


@needs_root
@pytest.mark.slow
def test_serve_on_a_node(small_shm, scratch, images, public):
    """It sees what a training of another user in another mount namespace holds, and with fewer capabilities it does not."""
    pod = serve_pod(pod_spec("serve", "DaemonSet"), scratch, images, small_shm)
    container = pod.containers()["serve"]
    user = Machine(["unshare", "-m", "--propagation", "private", "sh", "-c", 'mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec "$@"', "sh",
                    *as_user(64005)])
    seen = {}
    with user.training(PYTHONS["system"], train=public / "train.py", settle=False) as pid:
        for without in [(), ("SYS_PTRACE",), ("DAC_READ_SEARCH",)]:
            with pod.running(container, without=without) as ask:
                assert ask("/metrics")[0] == 401
                status, text = ask("/metrics", token=TOKEN)
                assert status == 200 and 'node="node-17"' in text
                found = dict(re.findall(rf'^shmguard_process_(\w+){{pid="{pid}",.*}} (\d+)$', text, re.M))
                seen[without] = {name for name, value in found.items() if int(value) > 0}
    everything_seen = seen[()]
    assert everything_seen >= {"rss_bytes", "pss_bytes", "uss_bytes", "shm_bytes", "open_fds"}
    assert not seen["SYS_PTRACE",]
    assert seen["DAC_READ_SEARCH",] == everything_seen - {"shm_bytes"}


def test_the_job_is_sized_by_plan():
    command = re.search(r"^# +(shmguard plan .*)$", (DEPLOY / "train" / "job.yaml").read_text(), re.M).group(1)
    plan = Machine().json(*shlex.split(command)[1:], "--shm", "64G", "--memory", "64G")
    spec = pod_spec("train", "Job")
    container, = spec["containers"]
    size = size_of(spec["volumes"][0]["emptyDir"]["sizeLimit"])
    assert size == plan["recommended"]
    limit = size_of(container["resources"]["limits"]["memory"])
    workers = int(container["args"][container["args"].index("--workers") + 1])
    assert limit == size_of(container["resources"]["requests"]["memory"]) and limit - size >= (1 + workers) * size_of("1Gi")
    assert shlex.split(command)[-4:] == container["args"], "what plan was asked is what the training does"
    advice = package("yaml").safe_load(plan["flags"]["kubernetes"])["spec"]
    assert spec["volumes"][0] == advice["volumes"][0]
    assert container["volumeMounts"][0] == advice["containers"][0]["volumeMounts"][0]


def size_of(text):
    return int(text[:-2]) << {"Mi": 20, "Gi": 30}[text[-2:]]


@needs_root
@pytest.mark.slow
def test_the_job_runs(scratch, images):
    with mount_namespace("mode=1777,size=1g") as node:
        pod = Pod(pod_spec("train", "Job"), scratch, images, node, node={"shm": "/dev/shm"})
        done = pod.run(pod.containers()["train"])
        assert done.returncode == 0 and "finished 50 steps" in done.stdout, done
