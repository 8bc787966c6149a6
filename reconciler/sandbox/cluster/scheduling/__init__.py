"""kube-scheduler of the simulated cluster: filters, scores, volumes, reasons."""
