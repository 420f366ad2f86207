{{/* The name of everything in the release, short enough for its suffixes. */}}
{{- define "mcptest.name" -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) | trunc 46 | trimSuffix "-" }}
{{- end }}

{{- define "mcptest.selector" -}}
app.kubernetes.io/name: mcptest-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "mcptest.labels" -}}
{{ include "mcptest.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "mcptest.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "mcptest.subject" -}}
- {kind: ServiceAccount, name: {{ include "mcptest.name" . }}, namespace: {{ .Release.Namespace }}}
{{- end }}
