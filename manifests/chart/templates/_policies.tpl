{{/*
The cluster policy as text: one that states nothing or the given one, with `policies.accounts`, and with a cap if
`mode` says so. A policy that does not fit the schema, which is
generated from the reader of policies, ends the rendering.
*/}}
{{- define "interlock.policies.cluster" -}}
{{- $values := .Values.policies -}}
{{- $given := $values.cluster | default (include "interlock.file" (list . "cluster.yaml")) -}}
{{- $policy := include "interlock.policies.read" (list $given "ClusterPolicy" "policies.cluster") | fromYaml -}}
{{- $more := eq .Values.mode "audit-first" -}}
{{- if $more }}{{ $_ := set $policy "cap" "audit" }}{{ end -}}
{{- range $name, $lists := $values.accounts -}}
{{- range $list, $accounts := $lists -}}
{{- if $accounts -}}
{{- $more = true -}}
{{- $known := get $policy $list -}}
{{- if kindIs "map" $known -}}
{{- $_ := set $known "only" (concat (default list $known.only) $accounts) -}}
{{- else -}}
{{- $_ := set $policy $list (concat (default list $known) $accounts) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "interlock.policies.check" (list . "else" $policy "policies.cluster") -}}
{{- if and (kindIs "string" $given) (not $more) }}{{ $given }}{{ else }}{{ toYaml $policy }}{{ end -}}
{{- end }}

{{/* The policy of a namespace as text. Takes [root, namespace, policy]. */}}
{{- define "interlock.policies.namespace" -}}
{{- $given := index . 2 -}}
{{- $at := printf "policies.namespaces.%s" (index . 1) -}}
{{- $policy := include "interlock.policies.read" (list $given "NamespacePolicy" $at) | fromYaml -}}
{{- include "interlock.policies.check" (list (index . 0) "then" $policy $at) -}}
{{- if kindIs "string" $given }}{{ $given }}{{ else }}{{ toYaml $policy }}{{ end -}}
{{- end }}

{{/* Reads a policy that is text or a map. A map gets apiVersion and kind. Takes [policy, kind, path of the value]. */}}
{{- define "interlock.policies.read" -}}
{{- $given := index . 0 -}}
{{- $policy := dict -}}
{{- if kindIs "string" $given -}}
{{- $policy = fromYaml $given -}}
{{- with $policy.Error }}{{ fail (printf "%s: the text is not a YAML mapping: %s" (index $ 2) .) }}{{ end -}}
{{- else -}}
{{- $policy = merge (deepCopy $given) (dict "apiVersion" "interlock.dev/v1alpha1" "kind" (index . 1)) -}}
{{- end -}}
{{- if kindIs "map" $policy.rules -}}
{{- range $rule, $settings := $policy.rules -}}
{{- if kindIs "map" $settings -}}
{{- include "interlock.policies.off" $settings -}}
{{- $cases := $settings.cases -}}
{{- if kindIs "map" $cases }}{{ $cases = $cases.only }}{{ end -}}
{{- if kindIs "slice" $cases }}{{ range $cases }}{{ include "interlock.policies.off" . }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ toYaml $policy }}
{{- end }}

{{/* Restores the mode off, which helm reads as false, as YAML 1.1 does. Policies are YAML 1.2. Takes what has a mode. */}}
{{- define "interlock.policies.off" -}}
{{- if kindIs "map" . }}{{ if kindIs "bool" .mode }}{{ if not .mode }}{{ $_ := set . "mode" "off" }}{{ end }}{{ end }}{{ end -}}
{{- end }}

{{/* Takes [root, branch of the schema, policy, path of the value]. */}}
{{- define "interlock.policies.check" -}}
{{- $schema := (index . 0).Files.Get "files/policy-schema.json" | fromJson -}}
{{- $wrong := include "interlock.policies.wrong" (list $schema.definitions (get $schema (index . 1)) (index . 2) (index . 3)) -}}
{{- with $wrong }}{{ fail (printf "the program would refuse this policy:%s" .) }}{{ end -}}
{{- end }}

{{/*
Each violation of a JSON Schema, on a line of its own. Knows the keywords that the schema of policies uses. Takes [definitions, schema,
value, path of the value].
*/}}
{{- define "interlock.policies.wrong" -}}
{{- $definitions := index . 0 -}}
{{- $schema := index . 1 -}}
{{- $value := index . 2 -}}
{{- $at := index . 3 -}}
{{- with get $schema "$ref" }}{{ $schema = get $definitions (base .) }}{{ end -}}
{{- $types := kindIs "slice" $schema.type | ternary $schema.type (list $schema.type | compact) -}}
{{- $is := dict "object" (kindIs "map" $value) "array" (kindIs "slice" $value) "boolean" (kindIs "bool" $value) -}}
{{- /* The reader of policies takes any scalar as text, and an empty value as an empty list or mapping. */ -}}
{{- $_ := set $is "string" (not (or (kindIs "map" $value) (kindIs "slice" $value))) -}}
{{- $fits := or (empty $types) (and (kindIs "invalid" $value) (or (has "object" $types) (has "array" $types))) -}}
{{- range $types }}{{ if get $is . }}{{ $fits = true }}{{ end }}{{ end -}}
{{- if not $fits }}
  {{ $at }}: expected {{ join " or " $types }}, got {{ toJson $value }}
{{- else -}}
{{- with $schema.enum }}{{ if not (has $value .) }}
  {{ $at }}: {{ toJson $value }} is none of {{ join ", " . }}
{{- end }}{{ end -}}
{{- with $schema.const }}{{ if ne $value . }}
  {{ $at }}: expected {{ . }}, got {{ toJson $value }}
{{- end }}{{ end -}}
{{- with $schema.pattern }}{{ if not (regexMatch . (toString $value)) }}
  {{ $at }}: {{ toJson $value }} does not match {{ . }}
{{- end }}{{ end -}}
{{- with $schema.minLength }}{{ if lt (len (toString $value)) (int .) }}
  {{ $at }}: the text is too short
{{- end }}{{ end -}}
{{- with $schema.maxLength }}{{ if gt (len (toString $value)) (int .) }}
  {{ $at }}: the text is too long
{{- end }}{{ end -}}
{{- with $schema.minItems }}{{ if and (not (kindIs "map" $value)) (lt (len (default list $value)) (int .)) }}
  {{ $at }}: the list is empty, so that nothing matches it; name a value, or remove it
{{- end }}{{ end -}}
{{- with $schema.maxItems }}{{ if and (not (kindIs "map" $value)) (gt (len (default list $value)) (int .)) }}
  {{ $at }}: at most {{ int . }} items
{{- end }}{{ end -}}
{{- if or (kindIs "map" $value) (not (has "array" $types)) -}}
{{- range $schema.required }}{{ if not (hasKey (default dict $value) .) }}
  {{ $at }}: the key {{ . }} is missing
{{- end }}{{ end -}}
{{- end -}}
{{- with $schema.items -}}
{{- $items := . -}}
{{- if kindIs "slice" $value }}{{ range $index, $item := $value }}{{ include "interlock.policies.wrong" (list $definitions $items $item (printf "%s[%d]" $at $index)) }}{{ end }}{{ end -}}
{{- end -}}
{{- with $schema.properties -}}
{{- $properties := . -}}
{{- if kindIs "map" $value -}}
{{- range $key, $item := $value -}}
{{- if hasKey $properties $key }}{{ include "interlock.policies.wrong" (list $definitions (get $properties $key) $item (printf "%s.%s" $at $key)) }}
{{- else }}
  {{ $at }}.{{ $key }}: there is no such key; known are {{ keys $properties | sortAlpha | join ", " }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
