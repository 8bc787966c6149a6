"""Why a node may not be disrupted: each reason is a Blocker with a stable code."""
