{{/*
There is one Interlock in a cluster, because the webhook configurations have fixed names. So all objects have fixed names,
independent of the release's name. The namespace of the release is Interlock's own namespace.
*/}}
{{/* The chart's own labels win over commonLabels. */}}
{{- define "interlock.labels" -}}
{{- $own := dict "app.kubernetes.io/name" "interlock" "app.kubernetes.io/version" .Chart.AppVersion "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") -}}
{{- merge $own .Values.commonLabels | toYaml }}
{{- end }}

{{/* Labels and annotations of an object's metadata. Takes [root, labels of its own, annotations of its own]; its own win. */}}
{{- define "interlock.marks" -}}
{{- $root := index . 0 -}}
{{- $labels := merge (deepCopy (index . 1)) (include "interlock.labels" $root | fromYaml) -}}
{{- $annotations := merge (deepCopy (index . 2)) $root.Values.commonAnnotations -}}
labels:
  {{- toYaml $labels | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The annotations of an object that exists only during `helm uninstall`. Takes the weight. */}}
{{- define "interlock.hook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- define "interlock.replicas" -}}
app.kubernetes.io/name: interlock
app.kubernetes.io/component: webhook
{{- end }}

{{- define "interlock.image" -}}
{{- $registry := required "image.registry: there is no default, because nobody publishes the image for you. Name the registry that has your build, for example --set image.registry=registry.example.com/platform. For an image without a registry in its name that is loaded into the nodes, name docker.io/library" .Values.image.registry -}}
{{ trimSuffix "/" $registry }}/{{ .Values.image.repository }}
{{- with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* A file of manifests/base, in the release's namespace. Takes [root, name]. */}}
{{- define "interlock.file" -}}
{{- $root := index . 0 -}}
{{- $root.Files.Get (printf "files/%s" (index . 1)) | replace "interlock-system" $root.Release.Namespace }}
{{- end }}

{{/* Adds the chart's labels and the common labels and annotations to an object. Takes [root, object]. */}}
{{- define "interlock.object" -}}
{{- $root := index . 0 -}}
{{- $object := index . 1 -}}
{{- $own := deepCopy (default dict $object.metadata.annotations) -}}
{{- if eq $object.kind "ServiceAccount" }}{{ $own = merge $own $root.Values.serviceAccount.annotations }}{{ end -}}
{{- /* Here the chart's labels win: the files of the base have some of the same names. */ -}}
{{- $labels := merge (include "interlock.labels" $root | fromYaml) (default dict $object.metadata.labels) -}}
{{- $metadata := include "interlock.marks" (list $root $labels $own) | fromYaml -}}
{{- $_ := set $object "metadata" (merge $metadata (omit $object.metadata "labels" "annotations")) -}}
{{ toYaml $object }}
{{- end }}

{{/* Whether the replicas manage their own certificates. */}}
{{- define "interlock.managed" -}}
{{- if eq .Values.certificates.mode "managed" }}true{{ end }}
{{- end }}

{{/* A security context without the keys that are null, or nothing. Takes the value. */}}
{{- define "interlock.security" -}}
{{- $given := dict -}}
{{- range $key, $value := . }}{{ if not (kindIs "invalid" $value) }}{{ $_ := set $given $key $value }}{{ end }}{{ end -}}
{{- with $given }}securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
