"""The Helm chart: its objects, its values, its alerts and dashboards."""
