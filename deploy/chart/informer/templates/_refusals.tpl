{{- /* Values that contradict each other, or that say elsewhere what has a value of its own. The schema has the rest. */ -}}
{{- define "informer.refuseContradictions" -}}
{{- if not .Values.includeSecrets -}}
{{- range .Values.preload -}}
{{- if regexMatch "^(core/v1/)?secrets?$" . -}}
{{- fail (printf "preload names %s, which can be read only with includeSecrets: true" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraRules -}}
{{- if has "secrets" .resources -}}
{{- fail "extraRules names secrets: set includeSecrets: true instead, which also tells the gateway to serve them" -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraArgs -}}
{{- if regexMatch "^(-[nA]|--(namespace|all-namespaces|listen|auth|tls-.*|allow-host|preload|idle-timeout|memory-limit|include-secrets))" . -}}
{{- fail (printf "extraArgs has %s: it follows from another value, see values.yaml" .) -}}
{{- end -}}
{{- if regexMatch "^--(demo|kubeconfig|context)" . -}}
{{- fail (printf "extraArgs has %s: in a pod the gateway reads the cluster around it" .) -}}
{{- end -}}
{{- end -}}
{{- range $value, $labels := dict "podLabels" .Values.podLabels "serviceMonitor.labels" .Values.serviceMonitor.labels -}}
{{- range $label, $_ := $labels -}}
{{- if regexMatch "^(app\\.kubernetes\\.io|helm\\.sh)/" $label -}}
{{- fail (printf "%s has %s, a label that the chart sets itself" $value $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $limit := .Values.resources.limits.memory -}}
{{- if ge (include "informer.bytes" .Values.memoryLimit | int64) (include "informer.bytes" $limit | int64) -}}
{{- fail (printf "memoryLimit (%s) must be below resources.limits.memory (%s), where the kernel ends the process" .Values.memoryLimit $limit) -}}
{{- end -}}
{{- end }}

{{- /* A size such as 512Mi as a number. */ -}}
{{- define "informer.bytes" -}}
{{- $units := dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- mul (regexFind "^[0-9]+" .) (get $units (trunc -2 .)) -}}
{{- end }}
