//! The table of built-in kinds.

/// Hands every kind that Kubernetes has built in and that can be listed to a macro: the one table from which
/// typed accessors, typed decoding and [`BUILTIN_KINDS`](crate::BUILTIN_KINDS) are made.
///
/// The macro gets the whole table in one call, so that it sees which kinds share a group and a version:
///
/// ```text
/// group <module> = "<group>" [<when>] in <path in k8s_openapi> {
///     version <module> [<when>] {
///         <Kind> <accessor> "<plural>" namespaced|cluster [<when>] { <facts> }
///     }
/// }
/// ```
///
/// The accessor is the plural as Rust would write it: `config_maps`. *When* is `since <minor>`,
/// `until <minor>`, both or nothing: in which versions of Kubernetes there is such a group, version or kind,
/// of those that `k8s-openapi` knows. [`if_minor!`](crate::if_minor) takes these words and keeps code only
/// where they hold.
/// A kind whose facts changed has a row before and a row after. The facts are `short_names`, `categories`,
/// `subresources` (of `status` and `scale`) and `verbs` where they are not the usual eight.
///
/// Groups stand in the order of discovery, versions by preference, kinds by name.
///
/// ```
/// // One module for each group, with the names of its kinds.
/// macro_rules! kind_names {
///     ($(group $group:ident = $name:literal $when:tt in $($path:ident)::+ {
///         $(version $version:ident $version_when:tt {
///             $($kind:ident $accessor:ident $plural:literal $scope:ident $kind_when:tt $facts:tt)*
///         })*
///     })*) => {
///         $(mod $group {
///             pub const KINDS: &[&str] = &[$($(stringify!($kind)),*),*];
///         })*
///     };
/// }
/// informer_model::for_each_kind!(kind_names);
///
/// assert!(core::KINDS.contains(&"Pod"));
/// assert_eq!(batch::KINDS, ["CronJob", "Job"]);
/// ```
#[macro_export]
macro_rules! for_each_kind {
    ($($callback:ident)::+) => { $($callback)::+! {
        group core = "" [] in api::core {
            version v1 [] {
                ComponentStatus component_statuses "componentstatuses" cluster [] {
                    short_names ["cs"] verbs ["get", "list"]
                }
                ConfigMap config_maps "configmaps" namespaced [] { short_names ["cm"] }
                Endpoints endpoints "endpoints" namespaced [] { short_names ["ep"] }
                Event events "events" namespaced [] { short_names ["ev"] }
                LimitRange limit_ranges "limitranges" namespaced [] { short_names ["limits"] }
                Namespace namespaces "namespaces" cluster [] {
                    short_names ["ns"]
                    subresources ["status"]
                    verbs ["create", "delete", "get", "list", "patch", "update", "watch"]
                }
                Node nodes "nodes" cluster [] { short_names ["no"] subresources ["status"] }
                PersistentVolume persistent_volumes "persistentvolumes" cluster [] {
                    short_names ["pv"] subresources ["status"]
                }
                PersistentVolumeClaim persistent_volume_claims "persistentvolumeclaims" namespaced [] {
                    short_names ["pvc"] subresources ["status"]
                }
                Pod pods "pods" namespaced [] {
                    short_names ["po"] categories ["all"] subresources ["status"]
                }
                PodTemplate pod_templates "podtemplates" namespaced [] {}
                ReplicationController replication_controllers "replicationcontrollers" namespaced [] {
                    short_names ["rc"] categories ["all"] subresources ["status", "scale"]
                }
                ResourceQuota resource_quotas "resourcequotas" namespaced [] {
                    short_names ["quota"] subresources ["status"]
                }
                Secret secrets "secrets" namespaced [] {}
                Service services "services" namespaced [] {
                    short_names ["svc"] categories ["all"] subresources ["status"]
                }
                ServiceAccount service_accounts "serviceaccounts" namespaced [] { short_names ["sa"] }
            }
        }
        group apiregistration = "apiregistration.k8s.io" [] in kube_aggregator::pkg::apis::apiregistration {
            version v1 [] {
                APIService api_services "apiservices" cluster [] {
                    categories ["api-extensions"] subresources ["status"]
                }
            }
        }
        group apps = "apps" [] in api::apps {
            version v1 [] {
                ControllerRevision controller_revisions "controllerrevisions" namespaced [] {}
                DaemonSet daemon_sets "daemonsets" namespaced [] {
                    short_names ["ds"] categories ["all"] subresources ["status"]
                }
                Deployment deployments "deployments" namespaced [] {
                    short_names ["deploy"] categories ["all"] subresources ["status", "scale"]
                }
                ReplicaSet replica_sets "replicasets" namespaced [] {
                    short_names ["rs"] categories ["all"] subresources ["status", "scale"]
                }
                StatefulSet stateful_sets "statefulsets" namespaced [] {
                    short_names ["sts"] categories ["all"] subresources ["status", "scale"]
                }
            }
        }
        group events = "events.k8s.io" [] in api::events {
            version v1 [] {
                Event events "events" namespaced [] { short_names ["ev"] }
            }
        }
        group autoscaling = "autoscaling" [] in api::autoscaling {
            version v2 [] {
                HorizontalPodAutoscaler horizontal_pod_autoscalers "horizontalpodautoscalers" namespaced [] {
                    short_names ["hpa"] categories ["all"] subresources ["status"]
                }
            }
            version v1 [] {
                HorizontalPodAutoscaler horizontal_pod_autoscalers "horizontalpodautoscalers" namespaced [] {
                    short_names ["hpa"] categories ["all"] subresources ["status"]
                }
            }
        }
        group batch = "batch" [] in api::batch {
            version v1 [] {
                CronJob cron_jobs "cronjobs" namespaced [] {
                    short_names ["cj"] categories ["all"] subresources ["status"]
                }
                Job jobs "jobs" namespaced [] { categories ["all"] subresources ["status"] }
            }
        }
        group certificates = "certificates.k8s.io" [] in api::certificates {
            version v1 [] {
                CertificateSigningRequest certificate_signing_requests
                    "certificatesigningrequests" cluster [] { short_names ["csr"] subresources ["status"] }
                ClusterTrustBundle cluster_trust_bundles "clustertrustbundles" cluster [since 37] {}
                PodCertificateRequest pod_certificate_requests
                    "podcertificaterequests" namespaced [since 37] { subresources ["status"] }
            }
            version v1beta1 [] {
                ClusterTrustBundle cluster_trust_bundles "clustertrustbundles" cluster [] {}
                PodCertificateRequest pod_certificate_requests
                    "podcertificaterequests" namespaced [since 35] { subresources ["status"] }
            }
            version v1alpha1 [until 36] {
                ClusterTrustBundle cluster_trust_bundles "clustertrustbundles" cluster [] {}
                PodCertificateRequest pod_certificate_requests
                    "podcertificaterequests" namespaced [since 34 until 34] { subresources ["status"] }
            }
        }
        group networking = "networking.k8s.io" [] in api::networking {
            version v1 [] {
                IPAddress ip_addresses "ipaddresses" cluster [] { short_names ["ip"] }
                Ingress ingresses "ingresses" namespaced [] { short_names ["ing"] subresources ["status"] }
                IngressClass ingress_classes "ingressclasses" cluster [] {}
                NetworkPolicy network_policies "networkpolicies" namespaced [] { short_names ["netpol"] }
                ServiceCIDR service_cidrs "servicecidrs" cluster [] { subresources ["status"] }
            }
            version v1beta1 [until 36] {
                IPAddress ip_addresses "ipaddresses" cluster [] { short_names ["ip"] }
                ServiceCIDR service_cidrs "servicecidrs" cluster [] { subresources ["status"] }
            }
        }
        group policy = "policy" [] in api::policy {
            version v1 [] {
                PodDisruptionBudget pod_disruption_budgets "poddisruptionbudgets" namespaced [] {
                    short_names ["pdb"] subresources ["status"]
                }
            }
        }
        group rbac = "rbac.authorization.k8s.io" [] in api::rbac {
            version v1 [] {
                ClusterRole cluster_roles "clusterroles" cluster [] {}
                ClusterRoleBinding cluster_role_bindings "clusterrolebindings" cluster [] {}
                Role roles "roles" namespaced [] {}
                RoleBinding role_bindings "rolebindings" namespaced [] {}
            }
        }
        group storage = "storage.k8s.io" [] in api::storage {
            version v1 [] {
                CSIDriver csi_drivers "csidrivers" cluster [] {}
                CSINode csi_nodes "csinodes" cluster [until 36] {}
                CSINode csi_nodes "csinodes" cluster [since 37] { subresources ["status"] }
                CSIStorageCapacity csi_storage_capacities "csistoragecapacities" namespaced [] {}
                StorageClass storage_classes "storageclasses" cluster [] { short_names ["sc"] }
                VolumeAttachment volume_attachments "volumeattachments" cluster [] { subresources ["status"] }
                VolumeAttributesClass volume_attributes_classes "volumeattributesclasses" cluster [since 34] {
                    short_names ["vac"]
                }
            }
            version v1beta1 [until 36] {
                VolumeAttributesClass volume_attributes_classes "volumeattributesclasses" cluster [] {
                    short_names ["vac"]
                }
            }
            version v1alpha1 [until 34] {
                VolumeAttributesClass volume_attributes_classes "volumeattributesclasses" cluster [] {
                    short_names ["vac"]
                }
            }
        }
        group admissionregistration = "admissionregistration.k8s.io" [] in api::admissionregistration {
            version v1 [] {
                MutatingAdmissionPolicy mutating_admission_policies
                    "mutatingadmissionpolicies" cluster [since 36] { categories ["api-extensions"] }
                MutatingAdmissionPolicyBinding mutating_admission_policy_bindings
                    "mutatingadmissionpolicybindings" cluster [since 36] { categories ["api-extensions"] }
                MutatingWebhookConfiguration mutating_webhook_configurations
                    "mutatingwebhookconfigurations" cluster [] { categories ["api-extensions"] }
                ValidatingAdmissionPolicy validating_admission_policies
                    "validatingadmissionpolicies" cluster [] {
                    categories ["api-extensions"] subresources ["status"]
                }
                ValidatingAdmissionPolicyBinding validating_admission_policy_bindings
                    "validatingadmissionpolicybindings" cluster [] { categories ["api-extensions"] }
                ValidatingWebhookConfiguration validating_webhook_configurations
                    "validatingwebhookconfigurations" cluster [] { categories ["api-extensions"] }
            }
            version v1beta1 [] {
                MutatingAdmissionPolicy mutating_admission_policies
                    "mutatingadmissionpolicies" cluster [since 34] { categories ["api-extensions"] }
                MutatingAdmissionPolicyBinding mutating_admission_policy_bindings
                    "mutatingadmissionpolicybindings" cluster [since 34] { categories ["api-extensions"] }
                ValidatingAdmissionPolicy validating_admission_policies
                    "validatingadmissionpolicies" cluster [until 33] {
                    categories ["api-extensions"] subresources ["status"]
                }
                ValidatingAdmissionPolicyBinding validating_admission_policy_bindings
                    "validatingadmissionpolicybindings" cluster [until 33] { categories ["api-extensions"] }
            }
            version v1alpha1 [] {
                MutatingAdmissionPolicy mutating_admission_policies "mutatingadmissionpolicies" cluster [] {
                    categories ["api-extensions"]
                }
                MutatingAdmissionPolicyBinding mutating_admission_policy_bindings
                    "mutatingadmissionpolicybindings" cluster [] { categories ["api-extensions"] }
            }
        }
        group apiextensions = "apiextensions.k8s.io" [] in apiextensions_apiserver::pkg::apis::apiextensions {
            version v1 [] {
                CustomResourceDefinition custom_resource_definitions "customresourcedefinitions" cluster [] {
                    short_names ["crd", "crds"] categories ["api-extensions"] subresources ["status"]
                }
            }
        }
        group scheduling = "scheduling.k8s.io" [] in api::scheduling {
            version v1 [] {
                PriorityClass priority_classes "priorityclasses" cluster [] { short_names ["pc"] }
            }
            version v1beta1 [since 37] {
                PodGroup pod_groups "podgroups" namespaced [] { subresources ["status"] }
                Workload workloads "workloads" namespaced [] {}
            }
            version v1alpha3 [since 37] {
                CompositePodGroup composite_pod_groups "compositepodgroups" namespaced [] {
                    subresources ["status"]
                }
                PodGroup pod_groups "podgroups" namespaced [] { subresources ["status"] }
                Workload workloads "workloads" namespaced [] {}
            }
            version v1alpha2 [since 36 until 36] {
                PodGroup pod_groups "podgroups" namespaced [] { subresources ["status"] }
                Workload workloads "workloads" namespaced [] {}
            }
            version v1alpha1 [since 35 until 35] {
                Workload workloads "workloads" namespaced [] {}
            }
        }
        group coordination = "coordination.k8s.io" [] in api::coordination {
            version v1 [] {
                Lease leases "leases" namespaced [] {}
            }
            version v1beta1 [] {
                LeaseCandidate lease_candidates "leasecandidates" namespaced [] {}
            }
            version v1alpha2 [] {
                LeaseCandidate lease_candidates "leasecandidates" namespaced [] {}
            }
        }
        group node = "node.k8s.io" [] in api::node {
            version v1 [] {
                RuntimeClass runtime_classes "runtimeclasses" cluster [] {}
            }
        }
        group discovery = "discovery.k8s.io" [] in api::discovery {
            version v1 [] {
                EndpointSlice endpoint_slices "endpointslices" namespaced [] {}
            }
        }
        group resource = "resource.k8s.io" [] in api::resource {
            version v1 [since 34] {
                DeviceClass device_classes "deviceclasses" cluster [] {}
                DeviceTaintRule device_taint_rules "devicetaintrules" cluster [since 37] {
                    subresources ["status"]
                }
                ResourceClaim resource_claims "resourceclaims" namespaced [] { subresources ["status"] }
                ResourceClaimTemplate resource_claim_templates "resourceclaimtemplates" namespaced [] {}
                ResourceSlice resource_slices "resourceslices" cluster [] {}
            }
            version v1beta2 [] {
                DeviceClass device_classes "deviceclasses" cluster [] {}
                DeviceTaintRule device_taint_rules "devicetaintrules" cluster [since 36] {
                    subresources ["status"]
                }
                ResourceClaim resource_claims "resourceclaims" namespaced [] { subresources ["status"] }
                ResourceClaimTemplate resource_claim_templates "resourceclaimtemplates" namespaced [] {}
                ResourceSlice resource_slices "resourceslices" cluster [] {}
            }
            version v1beta1 [] {
                DeviceClass device_classes "deviceclasses" cluster [] {}
                ResourceClaim resource_claims "resourceclaims" namespaced [] { subresources ["status"] }
                ResourceClaimTemplate resource_claim_templates "resourceclaimtemplates" namespaced [] {}
                ResourceSlice resource_slices "resourceslices" cluster [] {}
            }
            version v1alpha3 [] {
                DeviceClass device_classes "deviceclasses" cluster [until 33] {}
                DeviceTaintRule device_taint_rules "devicetaintrules" cluster [until 34] {}
                DeviceTaintRule device_taint_rules "devicetaintrules" cluster [since 35] {
                    subresources ["status"]
                }
                ResourceClaim resource_claims "resourceclaims" namespaced [until 33] {
                    subresources ["status"]
                }
                ResourceClaimTemplate resource_claim_templates
                    "resourceclaimtemplates" namespaced [until 33] {}
                ResourcePoolStatusRequest resource_pool_status_requests
                    "resourcepoolstatusrequests" cluster [since 36] { subresources ["status"] }
                ResourceSlice resource_slices "resourceslices" cluster [until 33] {}
            }
        }
        group flowcontrol = "flowcontrol.apiserver.k8s.io" [] in api::flowcontrol {
            version v1 [] {
                FlowSchema flow_schemas "flowschemas" cluster [] { subresources ["status"] }
                PriorityLevelConfiguration priority_level_configurations
                    "prioritylevelconfigurations" cluster [] { subresources ["status"] }
            }
        }
        group apiserverinternal = "internal.apiserver.k8s.io" [] in api::apiserverinternal {
            version v1alpha1 [] {
                StorageVersion storage_versions "storageversions" cluster [] { subresources ["status"] }
            }
        }
        group storagemigration = "storagemigration.k8s.io" [] in api::storagemigration {
            version v1 [since 37] {
                StorageVersionMigration storage_version_migrations "storageversionmigrations" cluster [] {
                    subresources ["status"]
                }
            }
            version v1beta1 [since 35] {
                StorageVersionMigration storage_version_migrations "storageversionmigrations" cluster [] {
                    subresources ["status"]
                }
            }
            version v1alpha1 [until 34] {
                StorageVersionMigration storage_version_migrations "storageversionmigrations" cluster [] {
                    subresources ["status"]
                }
            }
        }
        group lifecycle = "lifecycle.k8s.io" [since 37] in api::lifecycle {
            version v1alpha1 [] {
                Eviction evictions "evictions" namespaced [] { subresources ["status"] }
                EvictionRequest eviction_requests "evictionrequests" namespaced [] { subresources ["status"] }
            }
        }
    } };
}

/// Keeps items or statements only for the minor versions of Kubernetes that `since` and `until` name.
///
/// It asks `k8s-openapi` for the version that is enabled, so that crate must be a dependency of the one that
/// writes this. A minor version that no row of the table names is not known here; the compiler says so when
/// one is added.
///
/// ```text
/// informer_model::if_minor! { [since 34 until 36]
///     use k8s_openapi::api::...;
/// }
/// ```
#[macro_export]
macro_rules! if_minor {
    ([] $($code:tt)*) => { $($code)* };
    ([since 34 $($rest:tt)*] $($code:tt)*) => {
        ::k8s_openapi::k8s_if_ge_1_34! { $crate::if_minor! { [$($rest)*] $($code)* } }
    };
    ([since 35 $($rest:tt)*] $($code:tt)*) => {
        ::k8s_openapi::k8s_if_ge_1_35! { $crate::if_minor! { [$($rest)*] $($code)* } }
    };
    ([since 36 $($rest:tt)*] $($code:tt)*) => {
        ::k8s_openapi::k8s_if_ge_1_36! { $crate::if_minor! { [$($rest)*] $($code)* } }
    };
    ([since 37 $($rest:tt)*] $($code:tt)*) => {
        ::k8s_openapi::k8s_if_ge_1_37! { $crate::if_minor! { [$($rest)*] $($code)* } }
    };
    ([until 33] $($code:tt)*) => { ::k8s_openapi::k8s_if_le_1_33! { $($code)* } };
    ([until 34] $($code:tt)*) => { ::k8s_openapi::k8s_if_le_1_34! { $($code)* } };
    ([until 35] $($code:tt)*) => { ::k8s_openapi::k8s_if_le_1_35! { $($code)* } };
    ([until 36] $($code:tt)*) => { ::k8s_openapi::k8s_if_le_1_36! { $($code)* } };
}
