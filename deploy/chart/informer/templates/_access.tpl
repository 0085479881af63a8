{{- /*
What the gateway reads. RBAC can only add, so "everything but Secrets" is every built-in resource of Kubernetes 1.33 to
1.37 that can be watched, by name: a name that a server does not know does no harm.
*/ -}}

{{- define "informer.namespacedRules" -}}
{{- $read := "[get, list, watch]" -}}
- apiGroups: [""]
  resources:
    - configmaps
    - endpoints
    - events
    - limitranges
    - persistentvolumeclaims
    - pods
    - podtemplates
    - replicationcontrollers
    - resourcequotas
    - serviceaccounts
    - services
  verbs: {{ $read }}
{{- if .Values.includeSecrets }}
- apiGroups: [""]
  resources: [secrets]
  verbs: {{ $read }}
{{- end }}
- apiGroups: [apps]
  resources: [controllerrevisions, daemonsets, deployments, replicasets, statefulsets]
  verbs: {{ $read }}
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: {{ $read }}
- apiGroups: [batch]
  resources: [cronjobs, jobs]
  verbs: {{ $read }}
- apiGroups: [certificates.k8s.io]
  resources: [podcertificaterequests]
  verbs: {{ $read }}
- apiGroups: [coordination.k8s.io]
  resources: [leasecandidates, leases]
  verbs: {{ $read }}
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: {{ $read }}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: {{ $read }}
- apiGroups: [lifecycle.k8s.io]
  resources: [evictionrequests, evictions]
  verbs: {{ $read }}
- apiGroups: [networking.k8s.io]
  resources: [ingresses, networkpolicies]
  verbs: {{ $read }}
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: {{ $read }}
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings, roles]
  verbs: {{ $read }}
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims, resourceclaimtemplates]
  verbs: {{ $read }}
- apiGroups: [scheduling.k8s.io]
  resources: [compositepodgroups, podgroups, workloads]
  verbs: {{ $read }}
- apiGroups: [storage.k8s.io]
  resources: [csistoragecapacities]
  verbs: {{ $read }}
{{- range .Values.customResourceGroups }}
- apiGroups: [{{ . | quote }}]
  resources: ["*"]
  verbs: {{ $read }}
{{- end }}
{{- range .Values.extraRules }}
- apiGroups: {{ toJson .apiGroups }}
  resources: {{ toJson .resources }}
  verbs: {{ $read }}
{{- end }}
{{- end }}

{{- define "informer.clusterRules" -}}
{{- $read := "[get, list, watch]" -}}
- apiGroups: [""]
  resources: [namespaces, nodes, persistentvolumes]
  verbs: {{ $read }}
- apiGroups: [admissionregistration.k8s.io]
  resources:
    - mutatingadmissionpolicies
    - mutatingadmissionpolicybindings
    - mutatingwebhookconfigurations
    - validatingadmissionpolicies
    - validatingadmissionpolicybindings
    - validatingwebhookconfigurations
  verbs: {{ $read }}
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: {{ $read }}
- apiGroups: [apiregistration.k8s.io]
  resources: [apiservices]
  verbs: {{ $read }}
- apiGroups: [certificates.k8s.io]
  resources: [certificatesigningrequests, clustertrustbundles]
  verbs: {{ $read }}
- apiGroups: [flowcontrol.apiserver.k8s.io]
  resources: [flowschemas, prioritylevelconfigurations]
  verbs: {{ $read }}
- apiGroups: [internal.apiserver.k8s.io]
  resources: [storageversions]
  verbs: {{ $read }}
- apiGroups: [networking.k8s.io]
  resources: [ingressclasses, ipaddresses, servicecidrs]
  verbs: {{ $read }}
- apiGroups: [node.k8s.io]
  resources: [runtimeclasses]
  verbs: {{ $read }}
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterrolebindings, clusterroles]
  verbs: {{ $read }}
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses, devicetaintrules, resourcepoolstatusrequests, resourceslices]
  verbs: {{ $read }}
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: {{ $read }}
- apiGroups: [storage.k8s.io]
  resources: [csidrivers, csinodes, storageclasses, volumeattachments, volumeattributesclasses]
  verbs: {{ $read }}
- apiGroups: [storagemigration.k8s.io]
  resources: [storageversionmigrations]
  verbs: {{ $read }}
{{- end }}
