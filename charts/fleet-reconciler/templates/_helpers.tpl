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
