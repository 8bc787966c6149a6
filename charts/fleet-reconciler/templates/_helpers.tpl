{{/* The image, by digest where one is given. */}}
{{- define "fleet-reconciler.image" -}}
{{- if .Values.image.digest -}}
{{ printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else -}}
{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end -}}
{{- end -}}

{{/* The config and the files that it names, as JSON: path to text. */}}
{{- define "fleet-reconciler.files" -}}
{{ merge (dict "sectors.yaml" .Values.config) .Values.extraFiles | toJson }}
{{- end -}}

{{/* Changes when a file changes: the pods are replaced then. The same as `reconciler manifest`'s. */}}
{{- define "fleet-reconciler.configHash" -}}
{{- $files := include "fleet-reconciler.files" . | fromJson -}}
{{- $text := "" -}}
{{- range $path := keys $files | sortAlpha -}}
{{- $text = printf "%s%s\n%s\n" $text $path (index $files $path) -}}
{{- end -}}
{{ $text | sha256sum }}
{{- end -}}

{{/* One section of the config, as JSON; empty where it has none. */}}
{{- define "fleet-reconciler.section" -}}
{{- $section := index (.Values.config | fromYaml) .name -}}
{{ kindIs "map" $section | ternary $section dict | toJson }}
{{- end -}}

{{/* Whether the config has the replicas elect the one that acts: `true` or `false`. */}}
{{- define "fleet-reconciler.elects" -}}
{{- $election := include "fleet-reconciler.section" (dict "Values" .Values "name" "leader_election") | fromJson -}}
{{ not (has (dig "enabled" true $election | toString | lower) (list "false" "no" "off" "n")) }}
{{- end -}}

{{/* Refuses what no pod of this install could run with; `reconciler manifest` refuses the same. */}}
{{- define "fleet-reconciler.checkConfig" -}}
{{- $config := .Values.config | fromYaml -}}
{{- with index $config "Error" -}}
{{- fail (printf "config: is not valid YAML: %s" .) -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) (eq (include "fleet-reconciler.elects" .) "false") -}}
{{- fail "replicas: more than one needs leader_election.enabled in the config: two would both act" -}}
{{- end -}}
{{- $election := include "fleet-reconciler.section" (dict "Values" .Values "name" "leader_election") | fromJson -}}
{{- with $election.namespace -}}
{{- if ne (toString .) $.Release.Namespace -}}
{{- fail (printf "config: leader_election.namespace: the pods may write Leases in %s alone: take it out" $.Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- $notifications := include "fleet-reconciler.section" (dict "Values" .Values "name" "notifications") | fromJson -}}
{{- if $notifications.slack_hook -}}
{{- fail "config: notifications.slack_hook: a ConfigMap is not a place for a secret: take it out; the Deployment reads the key slack-hook of the Secret fleet-reconciler" -}}
{{- end -}}
{{- if $config.kubeconfig -}}
{{- fail "config: kubeconfig: a pod has no such file: take it out of the config" -}}
{{- end -}}
{{- if $config.kube_context -}}
{{- fail "config: kube_context: a pod has no kubeconfig with contexts: take it out of the config" -}}
{{- end -}}
{{- with $config.listen_token_file -}}
{{- if ne (toString .) "/etc/fleet-reconciler-token/listen-token" -}}
{{- fail "config: listen_token_file: the pods have no such file: /etc/fleet-reconciler-token/listen-token is the Secret's" -}}
{{- end -}}
{{- if $.Values.serviceMonitor.enabled -}}
{{- fail "serviceMonitor.enabled: the config has a listen_token_file, and the ServiceMonitor sends no token: switch it off, and write one with authorization" -}}
{{- end -}}
{{- end -}}
{{- $recording := include "fleet-reconciler.section" (dict "Values" .Values "name" "recording") | fromJson -}}
{{- if and $recording.path (not (hasPrefix "s3://" (toString $recording.path))) -}}
{{- fail "config: recording.path: the pods have no disk to record on: name s3://BUCKET/PREFIX" -}}
{{- end -}}
{{- end -}}
