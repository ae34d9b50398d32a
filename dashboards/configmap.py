"""The dashboards as Kubernetes ConfigMaps, for the sidecar that Grafana's Helm chart runs."""

import json

from vramscope.dashboards.build import files

__all__ = ["config_maps"]

LABEL = "grafana_dashboard"
"""The label that the sidecar looks for."""


def config_maps(namespace: str) -> str:
    """Return one ConfigMap a dashboard, as documents of one file. JSON is YAML too."""
    documents = []
    for name, text in files().items():
        documents.append(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": name.removesuffix(".json"),
                    "namespace": namespace,
                    "labels": {LABEL: "1", "app.kubernetes.io/part-of": "vramscope"},
                    "annotations": {"grafana_folder": "vramscope"},
                },
                "data": {name: text},
            }
        )
    return "".join(f"---\n{json.dumps(document, indent=2)}\n" for document in documents)
