{{/*
There is one Interlock in a cluster, because the webhook configurations have fixed names. So all objects have fixed names,
independent of the release's name. The namespace of the release is Interlock's own namespace.
*/}}
{{- define "interlock.labels" -}}
app.kubernetes.io/name: interlock
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "interlock.replicas" -}}
app.kubernetes.io/name: interlock
app.kubernetes.io/component: webhook
{{- end }}

{{- define "interlock.image" -}}
{{- with .Values.image.registry }}{{ trimSuffix "/" . }}/{{ end }}
{{- .Values.image.repository }}
{{- with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* A file of manifests/base, in the release's namespace. Takes [root, name]. */}}
{{- define "interlock.file" -}}
{{- $root := index . 0 -}}
{{- $root.Files.Get (printf "files/%s" (index . 1)) | replace "interlock-system" $root.Release.Namespace }}
{{- end }}

{{/* Adds the chart's labels to an object. Takes [root, object]. */}}
{{- define "interlock.object" -}}
{{- $root := index . 0 -}}
{{- $object := index . 1 -}}
{{- $labels := include "interlock.labels" $root | fromYaml -}}
{{- $_ := set $object.metadata "labels" (mustMergeOverwrite (default dict $object.metadata.labels) $labels) -}}
{{ toYaml $object }}
{{- end }}

{{/* A policy, given as text (which keeps its comments) or as a map. */}}
{{- define "interlock.policy" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* Whether the replicas manage their own certificates. */}}
{{- define "interlock.managed" -}}
{{- if eq .Values.certificates.mode "managed" }}true{{ end }}
{{- end }}

{{/* The securityContext that the restricted profile requires, and a read-only root file system. */}}
{{- define "interlock.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "interlock.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}
