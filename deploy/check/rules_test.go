package main

import (
	"os"
	"strings"
	"testing"
)

// plain is the rendering that is known to be good. Each test spoils it in one place.
func plain(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../manifests/informer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func check(t *testing.T, text string, asked Asked) []string {
	t.Helper()
	rendering, err := parseRendering([]byte(text))
	if err != nil {
		return []string{err.Error()}
	}
	return append(checkAccess(rendering, asked), checkWorkload(rendering, asked)...)
}

// replace fails a test whose spoiling would change nothing.
func replace(t *testing.T, text, from, to string) string {
	t.Helper()
	if !strings.Contains(text, from) {
		t.Fatalf("there is no %q to replace", from)
	}
	return strings.Replace(text, from, to, 1)
}

func wantFinding(t *testing.T, findings []string, want string) {
	t.Helper()
	if !strings.Contains(strings.Join(findings, "\n"), want) {
		t.Errorf("want a finding with %q, got %q", want, findings)
	}
}

func TestTheGoodRenderingIsAccepted(t *testing.T) {
	if findings := check(t, plain(t), Asked{}); len(findings) > 0 {
		t.Error(findings)
	}
}

func TestASpoiledRenderingIsRefused(t *testing.T) {
	rule := "  - apiGroups: [batch]\n    resources: [cronjobs, jobs]\n    verbs: [get, list, watch]\n"
	tests := map[string]struct{ from, to, want string }{
		"secrets":             {"      - configmaps\n", "      - secrets\n", "secrets readable: true"},
		"every core resource": {"      - configmaps\n", "      - \"*\"\n", `reads every resource of [""]`},
		"a subresource":       {"      - configmaps\n", "      - pods/exec\n", "reads the subresource pods/exec"},
		"every group":         {"apiGroups: [batch]", `apiGroups: ["*"]`, "reads every API group"},
		"every verb":          {rule, strings.Replace(rule, "[get, list, watch]", `["*"]`, 1), `may "*"`},
		"a write verb":        {rule, strings.Replace(rule, "watch]", "watch, delete]", 1), `may "delete" [batch/cronjobs batch/jobs]`},
		"create of others":    {"resources: [tokenreviews]", "resources: [tokenreviews, tokens]", `may "create"`},
		"review of oneself":   {"resources: [tokenreviews]", "resources: [selfsubjectreviews]", "nobody may create authentication.k8s.io/tokenreviews"},
		"a path": {rule, rule + "  - nonResourceURLs: [/debug]\n    verbs: [get]\n",
			"grants paths: [/debug]"},
		"a foreign role":    {"  name: informer:informer:read\nsubjects", "  name: cluster-admin\nsubjects", "binds ClusterRole cluster-admin"},
		"a foreign subject": {"  - kind: ServiceAccount\n    name: \"informer\"", "  - kind: ServiceAccount\n    name: \"default\"", "gives access to ServiceAccount informer/default"},
		"a group subject":   {"  - kind: ServiceAccount\n", "  - kind: Group\n", "gives access to Group"},

		"root":                {"runAsNonRoot: true", "runAsNonRoot: false", "may run as root"},
		"another user":        {"runAsUser: 65532", "runAsUser: 0", "does not run as user 65532"},
		"no seccomp":          {"type: RuntimeDefault", "type: Unconfined", "has no seccomp profile"},
		"host network":        {"enableServiceLinks: false", "hostNetwork: true", "shares namespaces of the node"},
		"writable root":       {"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "root file system is writable"},
		"escalation":          {"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "may gain privileges"},
		"privileged":          {"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: false\n            privileged: true", "is privileged"},
		"capabilities":        {"drop: [ALL]", "drop: [NET_RAW]", "keeps capabilities"},
		"added capabilities":  {"drop: [ALL]", "drop: [ALL]\n              add: [SYS_ADMIN]", "keeps capabilities"},
		"user of container":   {"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: true\n            runAsUser: 0", "overrides the user of the pod"},
		"token for everybody": {"automountServiceAccountToken: false", "automountServiceAccountToken: true", "gives its token to every pod"},
		"a host path": {"      topologySpreadConstraints:", "      volumes:\n        - name: node\n          hostPath: {path: /}\n      topologySpreadConstraints:",
			"mounts node, which is not a Secret"},
		"an init container": {"      containers:", "      initContainers:\n        - name: first\n      containers:", "has init containers"},

		"no request":         {"              cpu: 100m\n", "", "requests no CPU"},
		"no limit":           {"            limits:\n              memory: 1Gi\n", "", "has no limit of memory"},
		"limits crossed":     {"--memory-limit=768Mi", "--memory-limit=2Gi", "ended by the kernel before --memory-limit 2Gi"},
		"latest image":       {"image: \"informer:0.1.0\"", "image: \"informer:latest\"", "takes whatever image is newest"},
		"image with port":    {"image: \"informer:0.1.0\"", "image: \"registry:5000/informer\"", "takes whatever image is newest"},
		"no liveness":        {"livenessProbe:", "startupProbe2:", "unknown field"},
		"wrong readiness":    {"path: /readyz", "path: /healthz", "is not probed at /readyz"},
		"probe without TLS":  {"scheme: HTTPS", "scheme: HTTP", "is probed at /livez without TLS"},
		"probe of the pod":   {"value: localhost", "value: pod", "as a host that it does not answer to"},
		"probe of no port":   {"              port: https", "              port: http", "at a port that it does not have"},
		"a misspelt field":   {"readOnlyRootFilesystem", "readOnlyRootFileSystem", "unknown field"},
		"an unexpected kind": {"kind: Deployment", "kind: DaemonSet", "no business with a DaemonSet"},
		"no standard label":  {"    app.kubernetes.io/part-of: informer\n", "", "has no label app.kubernetes.io/part-of"},

		"no authentication": {"--auth=kubernetes", "--auth=none", "lets callers in without asking"},
		"no certificate":    {"            - --tls-self-signed\n", "", "has not exactly one certificate"},
		"not mounted": {"- --tls-self-signed", "- --tls-cert=/tls/tls.crt\n            - --tls-key=/tls/tls.key",
			"/tls/tls.key is not mounted"},
		"served secrets":       {"            - -A\n", "            - -A\n            - --include-secrets\n", "--include-secrets does not fit"},
		"some namespace":       {"            - -A\n", "            - -n\n            - shop\n", "watches the namespaces [shop]"},
		"unknown service name": {"            - --allow-host=informer.informer.svc\n", "", "does not answer to informer.informer.svc"},
		"unknown to probes":    {"            - --allow-host=localhost\n", "", "does not answer to localhost"},
		"another port":         {"--listen=0.0.0.0:8443", "--listen=0.0.0.0:9443", "which is not its port"},
		"loose service":        {"targetPort: https", "targetPort: http", "leads to no port"},
		"other pods":           {"  selector:\n    app.kubernetes.io/name: \"informer\"", "  selector:\n    app.kubernetes.io/name: \"other\"", "Service informer: selects no pod"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			wantFinding(t, check(t, replace(t, plain(t), test.from, test.to), Asked{}), test.want)
		})
	}
}

func TestWhatWasAskedForMustBeThere(t *testing.T) {
	off := false
	without := func(change func(*Asked)) (asked Asked) { change(&asked); return asked }
	tests := map[string]struct {
		asked Asked
		want  string
	}{
		"secrets":    {Asked{IncludeSecrets: true}, "secrets readable: false, but includeSecrets: true"},
		"the flag":   {Asked{IncludeSecrets: true}, "--include-secrets does not fit includeSecrets: true"},
		"namespaces": {Asked{Namespaces: []string{"shop"}}, "reads the whole cluster, though only namespaces were asked for"},
		"roles":      {Asked{Namespaces: []string{"shop"}}, "roles are in namespaces [], asked for were [shop]"},
		"no roles":   {without(func(a *Asked) { a.RBAC.Create = &off }), "though rbac.create is false"},
		"no account": {without(func(a *Asked) { a.ServiceAccount.Create = &off }), "ServiceAccount: 1 of them"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { wantFinding(t, check(t, plain(t), test.asked), test.want) })
	}
}

func TestWhatSelectsNothingIsRefused(t *testing.T) {
	tests := map[string]struct{ object, want string }{
		"budget": {"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {selector: {matchLabels: {a: b}}}",
			"PodDisruptionBudget b: selects no pod"},
		"policy": {"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p}\nspec: {podSelector: {matchLabels: {a: b}}}",
			"NetworkPolicy p: selects no pod"},
		"monitor": {"apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: m}\nspec: {selector: {matchLabels: {a: b}}, endpoints: []}",
			"ServiceMonitor m: selects no Service"},
		"monitor's port": {"apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: m}\nspec: {selector: {}, endpoints: [{port: http}]}",
			"ServiceMonitor m: asks a port that the Service does not have"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { wantFinding(t, check(t, plain(t)+"\n---\n"+test.object, Asked{}), test.want) })
	}
}

func TestAResourceWithoutARuleIsNamed(t *testing.T) {
	rendering, err := parseRendering([]byte(plain(t)))
	if err != nil {
		t.Fatal(err)
	}
	missing := unreadable(rendering, []string{"pods", "secrets", "jobs.batch", "websites.example.com", "tokenreviews.authentication.k8s.io"})
	if got := strings.Join(missing, " "); got != "secrets websites.example.com tokenreviews.authentication.k8s.io" {
		t.Error(got)
	}
}

func TestAFlagThatTheHelpDoesNotHaveIsNamed(t *testing.T) {
	rendering, err := parseRendering([]byte(plain(t)))
	if err != nil {
		t.Fatal(err)
	}
	help := "--listen <A> --auth <A> --tls-self-signed --allow-host <NAME>... -A, --all-namespaces --preload <R>,.. --idle-timeouts"
	if got := strings.Join(unknownFlags(rendering, help), " "); got != "--idle-timeout --memory-limit" {
		t.Error(got)
	}
}
