# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes as a cluster would see it: what kustomize builds from it, and what its admission policies make of a pod.

CEL is evaluated by cel-python, JMESPath by jmespath, and patches are applied by jsonpatch, from .venv-kubernetes. What the API server and
Kyverno add to these (types of objects, functions of Kubernetes, strategic merges, rules in sequence) is here.
"""

import copy
import json
import os
import pathlib
import re
import sys

import pytest

from conftest import PROJECT

VENV = PROJECT / ".venv-kubernetes"
DEPLOY = PROJECT / "deploy" / "kubernetes"
DIRECTORIES = sorted(path.parent.name for path in DEPLOY.glob("*/kustomization.yaml"))


def package(name):
    packages = next(VENV.glob("lib/python3*/site-packages"), None)
    if packages is None:
        why = "no packages for Kubernetes: scripts/kubernetes sets them up"
        if os.environ.get("SHMGUARD_REQUIRE_KUBERNETES"):
            pytest.fail(why)
        pytest.skip(why)
    if str(packages) not in sys.path:
        sys.path.append(str(packages))
    return pytest.importorskip(name)


# --- kustomize ------------------------------------------------------------------------------------------------------------------------


def load(path):
    yaml = package("yaml")
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def built(name):
    """The objects of a directory: the part of kustomize that these manifests use."""
    directory = DEPLOY / name
    kustomization, = load(directory / "kustomization.yaml")
    assert set(kustomization) <= {"apiVersion", "kind", "namespace", "resources", "secretGenerator", "images", "patches", "configurations"}
    objects = []
    for resource in kustomization["resources"]:
        path = (directory / resource).resolve()
        objects += built(path.relative_to(DEPLOY)) if path.is_dir() else load(path)
    for patch in kustomization.get("patches", []):
        change = package("jsonpatch").JsonPatch(package("yaml").safe_load(patch["patch"]))
        objects = [change.apply(thing) if thing["apiVersion"].startswith(patch["target"]["group"] + "/") else thing for thing in objects]
    for image in kustomization.get("images", []):
        for container in (c for thing in objects for c in containers(thing)):
            if container["image"] == image["name"]:
                container["image"] = f"{image['newName']}:{image['newTag']}"
    return objects


def pod_specs(thing):
    if thing["kind"] == "Pod":
        return [thing["spec"]]
    return [thing["spec"]["template"]["spec"]] if "template" in thing.get("spec", {}) else []


def containers(thing):
    return [container for spec in pod_specs(thing) for kind in ("initContainers", "containers") for container in spec.get(kind, [])]


# --- MutatingAdmissionPolicy ----------------------------------------------------------------------------------------------------------


def object_type(path):
    """`Object.spec.containers{...}` of Kubernetes' CEL: makes a map, and refuses a value that belongs to another field."""
    celtypes = package("celpy").celtypes

    class Made(celtypes.MapType):
        where = path

    class Type(celtypes.MapType):
        def __getitem__(self, name):
            return object_type(f"{path}.{name}")

        def __call__(self, fields):
            for name, value in fields.items():
                for one in value if isinstance(value, list) else [value]:
                    where = getattr(one, "where", None)
                    assert where in (None, f"{path}.{name}") or path == "JSONPatch", f"{path}.{name} is given a {where}"
            made = Made()
            made.update(fields)
            return made

    return Type()


def plain(value):
    """CEL's value as JSON's."""
    celtypes = package("celpy").celtypes
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, celtypes.BoolType):
        return bool(value)
    return int(value) if isinstance(value, celtypes.IntType) else str(value)


def admitted(policy, pod):
    """The pod as the MutatingAdmissionPolicy changes it."""
    celpy = package("celpy")

    def index_of(items, item):
        return celpy.celtypes.IntType(items.index(item) if item in items else -1)

    environment = celpy.Environment()
    given = {"object": celpy.json_to_cel(pod), "Object": object_type("Object"), "JSONPatch": object_type("JSONPatch"),
             "variables": celpy.celtypes.MapType()}

    def evaluate(expression):
        program = environment.program(environment.compile(expression), functions={"indexOf": index_of})
        return program.evaluate(given)

    spec = policy["spec"]
    required = spec["matchConstraints"]["objectSelector"]["matchExpressions"]
    if not all(rule["operator"] == "Exists" and rule["key"] in pod["metadata"].get("labels", {}) for rule in required):
        return pod
    if not all(evaluate(condition["expression"]) for condition in spec["matchConditions"]):
        return pod
    for variable in spec["variables"]:
        given["variables"][celpy.celtypes.StringType(variable["name"])] = evaluate(variable["expression"])
    for mutation in spec["mutations"]:
        patch = plain(evaluate(mutation["jsonPatch"]["expression"]))
        pod = package("jsonpatch").JsonPatch(patch).apply(pod)
    return pod


# --- Kyverno --------------------------------------------------------------------------------------------------------------------------


def substituted(value, context):
    """A value of a policy with its {{ variables }}; one that consists of a single variable has that one's type."""
    search = package("jmespath").search
    if isinstance(value, dict):
        return {key: substituted(one, context) for key, one in value.items()}
    if isinstance(value, list):
        return [substituted(one, context) for one in value]
    if not isinstance(value, str):
        return value
    whole = re.fullmatch(r"\{\{(.*)\}\}", value, re.S)
    if whole and "{{" not in whole.group(1):
        return search(whole.group(1).strip(), context)
    return re.sub(r"\{\{(.*?)\}\}", lambda found: str(search(found.group(1).strip(), context)), value)


def holds(conditions, context):
    compare = {
        "Equals": lambda key, value: key == value,
        "GreaterThan": lambda key, value: key > value,
        "AnyIn": lambda key, value: key in value,
        "AnyNotIn": lambda key, value: key not in value,
    }
    return all(compare[c["operator"]](substituted(c["key"], context), substituted(c["value"], context)) for c in conditions["all"])


MERGE_KEYS = {"containers": "name", "initContainers": "name", "env": "name", "volumes": "name", "volumeMounts": "mountPath"}


def merged(old, new, field=""):
    """Kubernetes' strategic merge, for the fields that the policy uses."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {**old, **{key: merged(old.get(key), value, key) for key, value in new.items()}}
    if isinstance(new, list) and isinstance(old, list) and field in MERGE_KEYS:
        key = MERGE_KEYS[field]
        by_key = {one[key]: one for one in new}
        return [merged(one, by_key.pop(one[key], {})) for one in old] + list(by_key.values())
    return new


def mutated(policy, pod):
    """The pod as the ClusterPolicy of Kyverno changes it: rule by rule, each seeing what those before have done."""
    jsonpatch = package("jsonpatch")
    for rule in policy["spec"]["rules"]:
        selector = rule["match"]["any"][0]["resources"]["selector"]["matchExpressions"]
        context = {"request": {"object": pod}}
        if any(one["key"] not in pod["metadata"].get("labels", {}) for one in selector) or not holds(rule["preconditions"], context):
            continue
        changes = rule["mutate"].get("foreach") or [rule["mutate"]]
        for change in changes:
            elements = package("jmespath").search(change["list"], context) if "list" in change else [None]
            for index, element in enumerate(elements):
                inner = {**context, "element": element, "elementIndex": index}
                if "preconditions" in change and not holds(change["preconditions"], inner):
                    continue
                if "patchStrategicMerge" in change:
                    pod = merged(pod, substituted(change["patchStrategicMerge"], inner))
                else:
                    patch = package("yaml").safe_load(substituted(change["patchesJson6902"], inner))
                    pod = jsonpatch.JsonPatch(patch).apply(pod)
    return pod


def sample(name):
    """A deep copy of one of the pods below."""
    return copy.deepcopy(PODS[name])


def pod_of(*containers_of_it, label="train", **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"shmguard/container": label} if label else {}},
            "spec": {"containers": list(containers_of_it), **spec}}


TRAIN = {"name": "train", "image": "train"}
SIDE = {"name": "proxy", "image": "proxy", "command": ["proxy"], "env": [{"name": "A", "value": "b"}]}
PODS = {
    "command": pod_of({**TRAIN, "command": ["python3", "train.py"], "args": ["--batch", "64"]}),
    "second": pod_of(SIDE, {**TRAIN, "command": ["python3"], "env": [{"name": "A", "value": "b"}], "volumeMounts": [
        {"name": "shm", "mountPath": "/dev/shm"}]}, volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}],
        initContainers=[{"name": "data", "image": "data"}]),
    "entrypoint": pod_of({**TRAIN, "args": ["--batch", "64"]}, SIDE),
    "empty-command": pod_of({**TRAIN, "command": []}),
    "environment": pod_of({**TRAIN, "env": [{"name": "A", "value": "b"}]}),
    "preload": pod_of({**TRAIN, "env": [{"name": "A", "value": "b"}, {"name": "LD_PRELOAD", "value": "/usr/lib/libjemalloc.so.2"}]}),
    "preload-from": pod_of({**TRAIN, "env": [{"name": "LD_PRELOAD", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]}),
    "other-name": pod_of({**TRAIN, "command": ["python3"]}, label="trainer"),
    "guarded-by-hand": pod_of({**TRAIN, "command": ["python3"]}, volumes=[{"name": "shmguard", "emptyDir": {}}]),
    "no-label": pod_of({**TRAIN, "command": ["python3"]}, label=None),
}


def documents(path):
    """The code blocks of a page that are YAML."""
    return re.findall(r"^```yaml\n(.*?)^```", pathlib.Path(path).read_text(), re.M | re.S)


def canonical(thing):
    """Without the order of lists that have a key."""
    if isinstance(thing, dict):
        return {key: sorted(map(canonical, value), key=json.dumps) if key in MERGE_KEYS else canonical(value) for key, value in thing.items()}
    return [canonical(one) for one in thing] if isinstance(thing, list) else thing
