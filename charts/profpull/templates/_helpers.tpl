{{/* The name of the objects. 52 characters: a StatefulSet appends a number and a hash to the names of its pods. */}}
{{- define "profpull.name" -}}
{{- $short := .Values.nameOverride | default .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $short .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $short | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "profpull.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{- define "profpull.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default "profpull" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "profpull.labels" -}}
{{ include "profpull.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* REGISTRY/REPOSITORY:TAG@DIGEST. */}}
{{- define "profpull.image" -}}
{{- $registry := .Values.image.registry -}}
{{- with .Values.global }}{{ $registry = .imageRegistry | default $registry }}{{ end -}}
{{- with $registry }}{{ printf "%s/" (trimSuffix "/" .) }}{{ end -}}
{{- .Values.image.repository -}}
{{- if or .Values.image.tag (not .Values.image.digest) }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- with .Values.image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/* Secrets for the registry: of the image, of the chart, and of a chart around it; names or objects. */}}
{{- define "profpull.pullSecrets" -}}
{{- $all := concat (.Values.image.pullSecrets | default list) (.Values.imagePullSecrets | default list) -}}
{{- with .Values.global }}{{ $all = concat $all (.imagePullSecrets | default list) }}{{ end -}}
{{- range $all }}
- name: {{ kindIs "string" . | ternary . (get (kindIs "map" . | ternary . dict) "name") }}
{{- end -}}
{{- end -}}

{{/* The security context of the pod; OpenShift chooses users and groups itself. */}}
{{- define "profpull.podSecurityContext" -}}
{{- $context := .Values.podSecurityContext | default dict -}}
{{- if .Values.openshift }}{{ $context = omit $context "runAsUser" "runAsGroup" "fsGroup" }}{{ end -}}
{{- with $context }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* What needs a Service besides the Service itself. */}}
{{- define "profpull.hasService" -}}
{{- if or .Values.service.enabled .Values.ingress.enabled .Values.httpRoute.enabled .Values.serviceMonitor.enabled }}yes{{ end -}}
{{- end -}}

{{- define "profpull.account" -}}
{{- .Values.serviceAccount.name | default (include "profpull.name" .) -}}
{{- end -}}

{{/* Seconds until the kubelet kills the pod: drainTimeout, rounded up, and 10 s. */}}
{{- define "profpull.gracePeriod" -}}
{{- $number := regexFind "^[0-9]+" .Values.drainTimeout | int64 -}}
{{- $unit := regexFind "[a-z]+$" .Values.drainTimeout -}}
{{- if eq $unit "m" -}}
{{- mul $number 60 | add 10 -}}
{{- else if eq $unit "ms" -}}
{{- div (add $number 999) 1000 | add 10 -}}
{{- else -}}
{{- add $number 10 -}}
{{- end -}}
{{- end -}}

{{/* The key of the configuration in its ConfigMap, which says what kind of file it is. */}}
{{- define "profpull.configKey" -}}
{{- if .Values.config.existing.name -}}
{{- .Values.config.existing.key -}}
{{- else -}}
profpull.{{ .Values.config.format }}
{{- end -}}
{{- end -}}

{{- define "profpull.configMap" -}}
{{- .Values.config.existing.name | default (include "profpull.name" .) -}}
{{- end -}}

{{- define "profpull.readerSelector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default "profpull" | trunc 56 | trimSuffix "-" }}-reader
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The bucket of an archive, and the access to it. */}}
{{- define "profpull.bucket" -}}
url: {{ .Values.archive.url | quote }}
{{- if hasPrefix "gs://" .Values.archive.url }}
gs:
  credentials: {{ .Values.archive.credentials }}
  {{- with .Values.archive.endpoint }}
  endpoint: {{ . | quote }}
  {{- end }}
{{- else }}
s3:
  region: {{ .Values.archive.region | quote }}
  credentials: {{ .Values.archive.credentials }}
  {{- with .Values.archive.endpoint }}
  endpoint: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The configuration where none is given: the built-in jobs, and one destination. */}}
{{- define "profpull.defaultConfig" -}}
{{- if .Values.archive.enabled -}}
query: {listen: ":4040"}
write:
  - name: kept
    url: store:///var/lib/profpull-store/store
    # Of the volume. A file is removed only when the bucket has it.
    retention: {max_age: {{ .Values.archive.diskMaxAge }}}
    store:
      archive:
        {{- if ne .Values.kind "StatefulSet" }}
        name: {{ include "profpull.name" . }}
        {{- end }}
        max_age: {{ .Values.archive.maxAge }}
        {{- include "profpull.bucket" . | nindent 8 }}
    {{- if .Values.spool.enabled }}
    queue: {spool_directory: /var/lib/profpull}
    {{- end }}
{{- else -}}
{{ include "profpull.pushConfig" . }}
{{- end -}}
{{- end -}}

{{/* The readers of an archive. */}}
{{- define "profpull.readerConfig" -}}
scrape_configs: []
query:
  listen: ":4040"
  {{- if eq .Values.kind "StatefulSet" }}
  # The writers have what is not archived yet: the newest one or two hours.
  peers: {dns: "{{ include "profpull.name" . }}:4040"}
  {{- end }}
write:
  - name: kept
    url: store:///nowhere
    store:
      read_only: true
      archive:
        cache: {directory: /var/cache/profpull, max_bytes: {{ .Values.archive.readers.cacheSize }}B}
        {{- include "profpull.bucket" . | nindent 8 }}
{{- end -}}

{{- define "profpull.pushConfig" -}}
write:
  - name: main
    {{- if and .Values.pyroscope.secret.name .Values.pyroscope.secret.urlKey }}
    url: ${PYROSCOPE_URL}
    {{- else }}
    url: {{ .Values.pyroscope.url | quote }}
    {{- end }}
    {{- with .Values.pyroscope.tenantId }}
    tenant_id: {{ . | quote }}
    {{- end }}
    {{- with .Values.pyroscope.secret }}
    {{- if and .name .tokenKey }}
    bearer_token_file: /etc/profpull-secret/{{ .tokenKey }}
    {{- else if and .name .passwordKey }}
    basic_auth:
      username_file: /etc/profpull-secret/{{ .usernameKey }}
      password_file: /etc/profpull-secret/{{ .passwordKey }}
    {{- end }}
    {{- end }}
    {{- if .Values.spool.enabled }}
    queue: {spool_directory: /var/lib/profpull}
    {{- end }}
{{- end -}}

{{- define "profpull.claim" -}}
accessModes: [ReadWriteOnce]
resources:
  requests:
    storage: {{ .Values.spool.size }}
{{- with .Values.spool.storageClass }}
storageClassName: {{ . }}
{{- end }}
{{- end -}}
