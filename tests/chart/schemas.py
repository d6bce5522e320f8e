"""Every rendered object against a strict schema: Kubernetes' own, or one of the table below for other operators' kinds.

The table has only the fields the chart writes, so a field that is not here is a mistake.
"""

from __future__ import annotations

from functools import cache

import jsonschema
import kubernetes_validate
from kubernetes_validate import utils

# The files are large, and it reads them anew for every object.
utils.schema_contents = cache(utils.schema_contents)

TEXT = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 0}
TIME = {"type": "string", "pattern": "^([0-9]+(ms|[smhdwy]))+$"}
LABELS = {"type": "object", "additionalProperties": {"type": "string"}}


def fields(needed: dict, optional: dict | None = None) -> dict:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": sorted(needed),
        "properties": {**needed, **(optional or {})},
    }


def many(item: dict) -> dict:
    return {"type": "array", "minItems": 1, "items": item}


SELECTOR = fields({"matchLabels": LABELS})
RELABELING = fields(
    {},
    {"action": TEXT, "regex": TEXT, "replacement": {"type": "string"}, "separator": TEXT,
     "sourceLabels": many(TEXT), "targetLabel": TEXT, "modulus": COUNT},
)
SCALING = fields(
    {},
    {
        "stabilizationWindowSeconds": COUNT,
        "selectPolicy": {"enum": ["Max", "Min", "Disabled"]},
        "policies": many(fields({"type": {"enum": ["Pods", "Percent"]}, "value": COUNT, "periodSeconds": COUNT})),
    },
)
PROMETHEUS_TRIGGER = fields(
    {
        "type": {"const": "prometheus"},
        "metricType": {"const": "AverageValue"},
        # KEDA reads metadata as texts only.
        "metadata": fields({key: TEXT for key in ("serverAddress", "query", "threshold", "activationThreshold")}),
        "authenticationRef": fields({"name": TEXT}, {"kind": {"enum": ["TriggerAuthentication", "ClusterTriggerAuthentication"]}}),
    }
)
CRON_TRIGGER = fields(
    {
        "type": {"const": "cron"},
        "name": TEXT,
        "metadata": fields({key: TEXT for key in ("timezone", "start", "end", "desiredReplicas")}),
    }
)
RULE = fields({"expr": TEXT}, {"alert": TEXT, "record": TEXT, "for": TIME, "keep_firing_for": TIME, "labels": LABELS, "annotations": LABELS})

CRDS = {
    ("keda.sh/v1alpha1", "ScaledObject"): fields(
        {
            "scaleTargetRef": fields({"name": TEXT}, {"apiVersion": TEXT, "kind": TEXT}),
            "minReplicaCount": COUNT,
            "maxReplicaCount": COUNT,
            "pollingInterval": COUNT,
            "cooldownPeriod": COUNT,
            "triggers": many({"oneOf": [PROMETHEUS_TRIGGER, CRON_TRIGGER]}),
        },
        {
            "advanced": fields({"horizontalPodAutoscalerConfig": fields({"behavior": fields({}, {"scaleUp": SCALING, "scaleDown": SCALING})})}),
            "fallback": fields({"failureThreshold": COUNT, "replicas": COUNT}, {"behavior": TEXT}),
        },
    ),
    ("keda.sh/v1alpha1", "TriggerAuthentication"): fields({"podIdentity": fields({"provider": {"const": "gcp"}})}),
    ("monitoring.coreos.com/v1", "PodMonitor"): fields(
        {
            "jobLabel": TEXT,
            "selector": SELECTOR,
            "podMetricsEndpoints": many(
                fields(
                    {"port": TEXT, "path": TEXT, "interval": TIME, "scrapeTimeout": TIME},
                    {"relabelings": many(RELABELING), "metricRelabelings": many(RELABELING)},
                )
            ),
        }
    ),
    ("monitoring.coreos.com/v1", "PrometheusRule"): fields(
        {"groups": many(fields({"name": TEXT, "rules": many(RULE)}, {"interval": TIME, "limit": COUNT, "labels": LABELS}))}
    ),
    ("monitoring.googleapis.com/v1", "PodMonitoring"): fields(
        {"selector": SELECTOR, "endpoints": many(fields({"port": TEXT, "path": TEXT, "interval": TIME}))}
    ),
}

METADATA = fields({"name": {"type": "string", "maxLength": 253}, "namespace": TEXT, "labels": LABELS}, {"annotations": LABELS})


def problems(document: dict, kube: str) -> list[str]:
    """What is wrong with an object; an unknown kind is wrong too."""
    key = (document["apiVersion"], document["kind"])
    where = f"{key[1]}/{document['metadata']['name']}"
    if key in CRDS:
        schema = fields({"apiVersion": TEXT, "kind": TEXT, "metadata": METADATA, "spec": CRDS[key]})
        found = jsonschema.Draft202012Validator(schema).iter_errors(document)
        return [f"{where}: {error.json_path}: {error.message}" for error in found]
    try:
        kubernetes_validate.validate(document, kube, strict=True)
    except kubernetes_validate.SchemaNotFoundError as error:
        return [f"{where}: {error.message}"]
    except kubernetes_validate.ValidationError as error:
        return [f"{where}: {'.'.join(map(str, error.path))}: {error.message}"]
    return []
