"""User data of nodes as AL2023 images take it."""

import json

NODE_CONFIG = json.dumps(
    {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {"name": "analytics"},
            "kubelet": {
                "config": {
                    "maxPods": 30,
                    "kubeReserved": {"cpu": "100m", "memory": "1Gi"},
                    "registerWithTaints": [
                        {"key": "lifecycle", "value": "OnDemand", "effect": "PreferNoSchedule"}
                    ],
                },
                "flags": ["--node-labels=sector=primary,fleet=primary-small"],
            },
        },
    }
)
MIME = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="BOUNDARY"

--BOUNDARY
Content-Type: {kind}

{text}
--BOUNDARY--
"""
"""With the content type for `kind` and the document for `text`."""
