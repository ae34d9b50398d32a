"""Grafana dashboards, generated with grafanalib from the catalog."""
