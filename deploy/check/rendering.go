package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	documents "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Asked is what the values of a rendering ask for, as far as it changes what is allowed.
type Asked struct {
	IncludeSecrets bool     `json:"includeSecrets"`
	Namespaces     []string `json:"namespaces"`
	RBAC           struct {
		Create *bool `json:"create"`
	} `json:"rbac"`
	ServiceAccount struct {
		Create *bool `json:"create"`
	} `json:"serviceAccount"`
}

func readAsked(path string) (asked Asked, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return asked, err
	}
	return asked, yaml.Unmarshal(text, &asked)
}

// byDefault is a switch that is on unless the values say otherwise.
func byDefault(value *bool) bool { return value == nil || *value }

// Rendering is what the chart printed, every object decoded as its type and without unknown fields.
type Rendering struct {
	objects     []object
	accounts    []*core.ServiceAccount
	roles       []role
	bindings    []binding
	deployments []*apps.Deployment
	services    []*core.Service
	budgets     []*policy.PodDisruptionBudget
	policies    []*networking.NetworkPolicy
	monitors    []*monitoring.ServiceMonitor
}

type object struct {
	kind string
	meta.Object
}

func (o object) String() string { return o.kind + " " + o.GetName() }

// role is a ClusterRole, or a Role with its namespace.
type role struct {
	object
	rules []rbac.PolicyRule
}

type binding struct {
	object
	ref      rbac.RoleRef
	subjects []rbac.Subject
}

func readRendering(path string) (*Rendering, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseRendering(text)
}

func parseRendering(text []byte) (*Rendering, error) {
	rendering := &Rendering{}
	reader := documents.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return rendering, nil
		}
		if err != nil {
			return nil, err
		}
		if err := rendering.add(document); err != nil {
			return nil, err
		}
	}
}

func (r *Rendering) add(document []byte) error {
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	var err error
	switch kind.APIVersion + " " + kind.Kind {
	case " ": // nothing but comments
	case "v1 Namespace":
		_, err = decode[core.Namespace](r, kind.Kind, document)
	case "v1 ServiceAccount":
		err = collect(r, &r.accounts, kind.Kind, document)
	case "v1 Service":
		err = collect(r, &r.services, kind.Kind, document)
	case "apps/v1 Deployment":
		err = collect(r, &r.deployments, kind.Kind, document)
	case "policy/v1 PodDisruptionBudget":
		err = collect(r, &r.budgets, kind.Kind, document)
	case "networking.k8s.io/v1 NetworkPolicy":
		err = collect(r, &r.policies, kind.Kind, document)
	case "monitoring.coreos.com/v1 ServiceMonitor":
		err = collect(r, &r.monitors, kind.Kind, document)
	case "rbac.authorization.k8s.io/v1 ClusterRole":
		var it *rbac.ClusterRole
		if it, err = decode[rbac.ClusterRole](r, kind.Kind, document); err == nil {
			r.roles = append(r.roles, role{object{kind.Kind, it}, it.Rules})
		}
	case "rbac.authorization.k8s.io/v1 Role":
		var it *rbac.Role
		if it, err = decode[rbac.Role](r, kind.Kind, document); err == nil {
			r.roles = append(r.roles, role{object{kind.Kind, it}, it.Rules})
		}
	case "rbac.authorization.k8s.io/v1 ClusterRoleBinding":
		var it *rbac.ClusterRoleBinding
		if it, err = decode[rbac.ClusterRoleBinding](r, kind.Kind, document); err == nil {
			r.bindings = append(r.bindings, binding{object{kind.Kind, it}, it.RoleRef, it.Subjects})
		}
	case "rbac.authorization.k8s.io/v1 RoleBinding":
		var it *rbac.RoleBinding
		if it, err = decode[rbac.RoleBinding](r, kind.Kind, document); err == nil {
			r.bindings = append(r.bindings, binding{object{kind.Kind, it}, it.RoleRef, it.Subjects})
		}
	default:
		err = fmt.Errorf("the chart has no business with a %s of %s", kind.Kind, kind.APIVersion)
	}
	return err
}

func collect[T any, P interface {
	*T
	meta.Object
}](r *Rendering, into *[]P, kind string, document []byte) error {
	it, err := decode[T, P](r, kind, document)
	*into = append(*into, it)
	return err
}

func decode[T any, P interface {
	*T
	meta.Object
}](r *Rendering, kind string, document []byte) (P, error) {
	it := P(new(T))
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return it, fmt.Errorf("%s: %w", kind, err)
	}
	// As an API server reads it: upper and lower case differ.
	unknown, err := json.UnmarshalStrict(text, it)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return it, fmt.Errorf("%s: %w", kind, err)
	}
	r.objects = append(r.objects, object{kind, it})
	return it, nil
}
