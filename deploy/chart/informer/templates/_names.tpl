{{- define "informer.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "informer.fullname" -}}
{{- $name := include "informer.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- /* Cluster-wide names carry the namespace, so that two releases of one name do not share a role. */ -}}
{{- define "informer.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "informer.fullname" .) -}}
{{- end }}

{{- define "informer.serviceAccountName" -}}
{{- with .Values.serviceAccount -}}
{{- if and (not .create) (not .name) -}}
{{- fail "serviceAccount.name must name the account to use when serviceAccount.create is false" -}}
{{- end -}}
{{- default (include "informer.fullname" $) .name -}}
{{- end -}}
{{- end }}

{{- define "informer.selectorLabels" -}}
app.kubernetes.io/name: {{ include "informer.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "informer.podLabels" -}}
{{ include "informer.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: gateway
app.kubernetes.io/part-of: informer
{{- end }}

{{- define "informer.labels" -}}
{{ include "informer.podLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "informer.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end }}
