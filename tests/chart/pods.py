"""Pod specs wherever they are, and the restricted Pod Security Standard as the API server checks it."""

from __future__ import annotations

ALLOWED_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
}


def spec_of(document: dict) -> dict | None:
    match document["kind"]:
        case "Pod":
            return document["spec"]
        case "Deployment" | "Job":
            return document["spec"]["template"]["spec"]
        case "CronJob":
            return document["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return None


def labels_of(document: dict) -> dict:
    match document["kind"]:
        case "Pod":
            return document["metadata"]["labels"]
        case "CronJob":
            return document["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
    return document["spec"]["template"]["metadata"]["labels"]


def containers(spec: dict) -> list[dict]:
    return [*spec.get("initContainers", []), *spec["containers"]]


def not_restricted(spec: dict) -> list[str]:
    """Why the restricted standard would refuse this pod."""
    found = [f"{key} is true" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    pod = spec.get("securityContext", {})
    for volume in spec.get("volumes", []):
        kinds = set(volume) - {"name"}
        if not kinds <= ALLOWED_VOLUMES:
            found.append(f"volume {volume['name']} is {kinds}")
    for container in containers(spec):
        own = container.get("securityContext", {})
        name = container["name"]

        def effective(key: str):
            return own.get(key, pod.get(key))

        if own.get("privileged"):
            found.append(f"{name} is privileged")
        if own.get("allowPrivilegeEscalation") is not False:
            found.append(f"{name} may escalate privileges")
        if effective("runAsNonRoot") is not True:
            found.append(f"{name} may run as root")
        if effective("runAsUser") == 0:
            found.append(f"{name} runs as user 0")
        if (effective("seccompProfile") or {}).get("type") not in ("RuntimeDefault", "Localhost"):
            found.append(f"{name} has no seccomp profile")
        capabilities = own.get("capabilities", {})
        if "ALL" not in capabilities.get("drop", []):
            found.append(f"{name} keeps capabilities")
        if set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
            found.append(f"{name} adds capabilities")
        if any(port.get("hostPort") for port in container.get("ports", [])):
            found.append(f"{name} has a host port")
    return found
