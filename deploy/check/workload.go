package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

var standardLabels = []string{
	"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version",
	"app.kubernetes.io/component", "app.kubernetes.io/part-of",
}

// probeHost is the name by which the kubelet asks.
const probeHost = "localhost"

// checkWorkload says what is unsafe or does not fit together in everything but the roles.
func checkWorkload(r *Rendering, asked Asked) (findings []string) {
	say := func(who string, problems ...string) {
		for _, problem := range problems {
			findings = append(findings, who+": "+problem)
		}
	}
	for _, object := range r.objects {
		for _, label := range standardLabels {
			if object.kind != "Namespace" && object.GetLabels()[label] == "" {
				say(object.String(), "has no label "+label)
			}
		}
	}
	if byDefault(asked.ServiceAccount.Create) != (len(r.accounts) == 1) {
		say("ServiceAccount", fmt.Sprintf("%d of them", len(r.accounts)))
	}
	for _, account := range r.accounts {
		if byDefault(account.AutomountServiceAccountToken) {
			say("ServiceAccount "+account.Name, "gives its token to every pod that does not ask for it")
		}
	}
	if len(r.deployments) != 1 || len(r.services) != 1 {
		return append(findings, fmt.Sprintf("%d Deployments and %d Services, not one of each", len(r.deployments), len(r.services)))
	}
	deployment, service := r.deployments[0], r.services[0]
	who := "Deployment " + deployment.Name
	say(who, checkPod(&deployment.Spec.Template.Spec)...)
	if len(deployment.Spec.Template.Spec.Containers) != 1 {
		return append(findings, who+": has not exactly one container")
	}
	container := &deployment.Spec.Template.Spec.Containers[0]
	say(who, checkContainer(container)...)
	say(who, checkFlags(container, service, asked)...)
	return append(findings, checkSelectors(r, deployment, service)...)
}

func checkPod(pod *core.PodSpec) (problems []string) {
	must := func(holds bool, problem string) {
		if !holds {
			problems = append(problems, problem)
		}
	}
	context := pod.SecurityContext
	if context == nil {
		context = &core.PodSecurityContext{}
	}
	must(context.RunAsNonRoot != nil && *context.RunAsNonRoot, "may run as root")
	must(context.RunAsUser != nil && *context.RunAsUser == 65532, "does not run as user 65532")
	must(context.SeccompProfile != nil && context.SeccompProfile.Type == core.SeccompProfileTypeRuntimeDefault, "has no seccomp profile")
	must(!pod.HostNetwork && !pod.HostPID && !pod.HostIPC, "shares namespaces of the node")
	must(pod.AutomountServiceAccountToken != nil && *pod.AutomountServiceAccountToken, "has no token for the API server")
	must(len(pod.InitContainers) == 0, "has init containers")
	must(len(pod.TopologySpreadConstraints) > 0, "is not spread over nodes")
	for _, volume := range pod.Volumes {
		must(volume.Secret != nil, "mounts "+volume.Name+", which is not a Secret")
	}
	return problems
}

func checkContainer(container *core.Container) (problems []string) {
	must := func(holds bool, problem string) {
		if !holds {
			problems = append(problems, problem)
		}
	}
	context := container.SecurityContext
	if context == nil {
		context = &core.SecurityContext{}
	}
	must(context.ReadOnlyRootFilesystem != nil && *context.ReadOnlyRootFilesystem, "its root file system is writable")
	must(context.AllowPrivilegeEscalation != nil && !*context.AllowPrivilegeEscalation, "may gain privileges")
	must(context.Privileged == nil || !*context.Privileged, "is privileged")
	must(context.RunAsUser == nil && context.RunAsNonRoot == nil, "overrides the user of the pod")
	must(context.SeccompProfile == nil, "overrides the seccomp profile of the pod")
	drops := context.Capabilities != nil && slices.Contains(context.Capabilities.Drop, "ALL")
	must(drops && len(context.Capabilities.Add) == 0, "keeps capabilities")

	requests, limits := container.Resources.Requests, container.Resources.Limits
	must(!requests.Cpu().IsZero() && !requests.Memory().IsZero(), "requests no CPU or no memory")
	must(!limits.Memory().IsZero(), "has no limit of memory")
	must(requests.Memory().Cmp(*limits.Memory()) <= 0, "requests more memory than its limit")
	image := container.Image[strings.LastIndex(container.Image, "/")+1:]
	must(strings.ContainsAny(image, ":@") && !strings.HasSuffix(image, ":latest"), "takes whatever image is newest")

	for name, probe := range map[string]*core.Probe{
		"/livez": container.LivenessProbe, "/readyz": container.ReadinessProbe,
	} {
		must(probe != nil && probe.HTTPGet != nil && probe.HTTPGet.Path == name, "is not probed at "+name)
	}
	for _, probe := range []*core.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil {
			continue
		}
		path := probe.HTTPGet.Path
		must(probe.HTTPGet.Scheme == core.URISchemeHTTPS, "is probed at "+path+" without TLS")
		must(slices.Contains(probe.HTTPGet.HTTPHeaders, core.HTTPHeader{Name: "Host", Value: probeHost}),
			"is probed at "+path+" as a host that it does not answer to")
		must(hasPort(container, probe.HTTPGet.Port.StrVal), "is probed at "+path+" at a port that it does not have")
	}
	return problems
}

// checkFlags says where the flags of `informer serve` do not fit the rest.
func checkFlags(container *core.Container, service *core.Service, asked Asked) (problems []string) {
	must := func(holds bool, format string, args ...any) {
		if !holds {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	flags, scope := parseFlags(container.Args)
	only := func(name, value string) bool { return slices.Equal(flags[name], []string{value}) }
	must(len(container.Command) == 0 && len(container.Args) > 0 && container.Args[0] == "serve", "does not run `informer serve`")
	must(only("--auth", "kubernetes"), "lets callers in without asking the API server")
	own := len(flags["--tls-cert"]) == 1 && len(flags["--tls-key"]) == 1
	must(own != (len(flags["--tls-self-signed"]) == 1), "has not exactly one certificate")
	for _, file := range slices.Concat(flags["--tls-cert"], flags["--tls-key"]) {
		mounted := slices.ContainsFunc(container.VolumeMounts, func(mount core.VolumeMount) bool {
			return mount.ReadOnly && strings.HasPrefix(file, mount.MountPath+"/")
		})
		must(mounted, "%s is not mounted", file)
	}
	must((len(flags["--include-secrets"]) > 0) == asked.IncludeSecrets, "--include-secrets does not fit includeSecrets: %t", asked.IncludeSecrets)
	must(sameSet(scope, asked.Namespaces), "watches the namespaces %v, asked for were %v", scope, asked.Namespaces)
	must((len(flags["-A"]) == 1) == (len(asked.Namespaces) == 0), "-A does not fit namespaces: %v", asked.Namespaces)
	for _, host := range []string{probeHost, service.Name, service.Name + "." + service.Namespace, service.Name + "." + service.Namespace + ".svc"} {
		must(slices.Contains(flags["--allow-host"], host), "does not answer to %s", host)
	}
	listens := len(flags["--listen"]) == 1 && len(container.Ports) == 1 &&
		strings.HasSuffix(flags["--listen"][0], fmt.Sprintf(":%d", container.Ports[0].ContainerPort))
	must(listens, "listens at %v, which is not its port", flags["--listen"])
	if limits := flags["--memory-limit"]; len(limits) == 1 {
		limit, err := resource.ParseQuantity(limits[0])
		must(err == nil && limit.Cmp(*container.Resources.Limits.Memory()) < 0, "is ended by the kernel before --memory-limit %s", limits[0])
	} else {
		must(false, "has no --memory-limit")
	}
	return problems
}

// parseFlags gives the values of each flag, and the namespaces after -n.
func parseFlags(args []string) (flags map[string][]string, namespaces []string) {
	flags = map[string][]string{}
	for i, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch {
		case arg == "-n" && i+1 < len(args):
			namespaces = append(namespaces, args[i+1])
			flags["-n"] = append(flags["-n"], args[i+1])
		case strings.HasPrefix(arg, "-"):
			flags[name] = append(flags[name], value)
		}
	}
	return flags, namespaces
}

// checkSelectors says which object selects something else than the pods, or the Service, of this chart.
func checkSelectors(r *Rendering, deployment *apps.Deployment, service *core.Service) (findings []string) {
	pod := deployment.Spec.Template
	must := func(holds bool, finding string) {
		if !holds {
			findings = append(findings, finding)
		}
	}
	selects := func(selector *meta.LabelSelector, chosen map[string]string) bool {
		chooses, err := meta.LabelSelectorAsSelector(selector)
		return err == nil && !chooses.Empty() && chooses.Matches(labels.Set(chosen))
	}
	must(selects(deployment.Spec.Selector, pod.Labels), "Deployment "+deployment.Name+": does not select its own pods")
	must(selects(&meta.LabelSelector{MatchLabels: service.Spec.Selector}, pod.Labels), "Service "+service.Name+": selects no pod")
	for _, port := range service.Spec.Ports {
		must(hasPort(&pod.Spec.Containers[0], port.TargetPort.StrVal), "Service "+service.Name+": leads to no port")
	}
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		must(selects(constraint.LabelSelector, pod.Labels), "Deployment "+deployment.Name+": spreads other pods than its own")
	}
	for _, budget := range r.budgets {
		must(selects(budget.Spec.Selector, pod.Labels), "PodDisruptionBudget "+budget.Name+": selects no pod")
	}
	for _, policy := range r.policies {
		must(selects(&policy.Spec.PodSelector, pod.Labels), "NetworkPolicy "+policy.Name+": selects no pod")
		must(len(policy.Spec.PolicyTypes) == 2, "NetworkPolicy "+policy.Name+": is not for both directions")
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				must(hasPort(&pod.Spec.Containers[0], port.Port.StrVal), "NetworkPolicy "+policy.Name+": opens a port that is not there")
			}
		}
	}
	for _, monitor := range r.monitors {
		must(selects(&monitor.Spec.Selector, service.Labels), "ServiceMonitor "+monitor.Name+": selects no Service")
		for _, endpoint := range monitor.Spec.Endpoints {
			named := func(port core.ServicePort) bool { return port.Name == endpoint.Port }
			must(slices.ContainsFunc(service.Spec.Ports, named), "ServiceMonitor "+monitor.Name+": asks a port that the Service does not have")
		}
	}
	return findings
}

func hasPort(container *core.Container, name string) bool {
	return slices.ContainsFunc(container.Ports, func(port core.ContainerPort) bool { return port.Name == name })
}

// unknownFlags are those flags of a rendering that the help text of `informer serve` does not have.
func unknownFlags(r *Rendering, help string) (unknown []string) {
	words := map[string]bool{}
	for _, word := range strings.FieldsFunc(help, func(c rune) bool { return strings.ContainsRune(" \t\n,=.[]<>|()", c) }) {
		words[word] = true
	}
	flags, _ := parseFlags(r.args())
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		if !words[flag] {
			unknown = append(unknown, flag)
		}
	}
	return unknown
}

// args are what the gateway is started with.
func (r *Rendering) args() (args []string) {
	for _, deployment := range r.deployments {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			args = append(args, container.Args...)
		}
	}
	return args
}
