package main

import (
	"fmt"
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
)

var (
	readVerbs = []string{"get", "list", "watch"}
	// Questions to the API server that have to be asked with create and change nothing.
	reviews = []string{"authentication.k8s.io/tokenreviews", "authorization.k8s.io/subjectaccessreviews"}
)

// checkAccess says what in the roles and bindings goes beyond reading what was asked for.
func checkAccess(r *Rendering, asked Asked) (findings []string) {
	say := func(who object, format string, args ...any) {
		findings = append(findings, who.String()+": "+fmt.Sprintf(format, args...))
	}
	secrets, granted := false, map[string]bool{}
	var namespaces []string
	for _, role := range r.roles {
		reads := false
		for _, rule := range role.rules {
			for _, problem := range checkRule(rule) {
				say(role.object, "%s", problem)
			}
			if isReview(rule) {
				for _, name := range names(rule) {
					granted[name] = true
				}
			} else {
				reads = true
				secrets = secrets || covers(rule, "", "secrets")
			}
		}
		if reads && len(asked.Namespaces) > 0 {
			if role.GetNamespace() == "" {
				say(role.object, "reads the whole cluster, though only namespaces were asked for")
			} else {
				namespaces = append(namespaces, role.GetNamespace())
			}
		}
		if !slices.ContainsFunc(r.bindings, func(b binding) bool { return b.binds(role) }) {
			say(role.object, "is bound to nobody")
		}
	}
	for _, binding := range r.bindings {
		if !slices.ContainsFunc(r.roles, binding.binds) {
			say(binding.object, "binds %s %s, which is not of this chart", binding.ref.Kind, binding.ref.Name)
		}
		for _, subject := range binding.subjects {
			if !r.isOurs(subject) {
				say(binding.object, "gives access to %s %s/%s", subject.Kind, subject.Namespace, subject.Name)
			}
		}
	}
	if !byDefault(asked.RBAC.Create) {
		if len(r.roles)+len(r.bindings) > 0 {
			findings = append(findings, "there are roles or bindings, though rbac.create is false")
		}
		return findings
	}
	if secrets != asked.IncludeSecrets {
		findings = append(findings, fmt.Sprintf("secrets readable: %t, but includeSecrets: %t", secrets, asked.IncludeSecrets))
	}
	for _, review := range reviews {
		if !granted[review] {
			findings = append(findings, "nobody may create "+review+", so no caller can be let in")
		}
	}
	if !sameSet(namespaces, asked.Namespaces) {
		findings = append(findings, fmt.Sprintf("roles are in namespaces %v, asked for were %v", namespaces, asked.Namespaces))
	}
	return findings
}

// checkRule says why a rule must not be granted.
func checkRule(rule rbac.PolicyRule) (problems []string) {
	if len(rule.NonResourceURLs) > 0 {
		problems = append(problems, fmt.Sprintf("grants paths: %v", rule.NonResourceURLs))
	}
	if isReview(rule) {
		return problems
	}
	for _, verb := range rule.Verbs {
		if !slices.Contains(readVerbs, verb) {
			problems = append(problems, fmt.Sprintf("may %q %v", verb, names(rule)))
		}
	}
	for _, group := range rule.APIGroups {
		if group == rbac.APIGroupAll {
			problems = append(problems, "reads every API group")
		}
	}
	for _, resource := range rule.Resources {
		builtin := func(group string) bool { return !strings.Contains(group, ".") }
		switch {
		case strings.Contains(resource, "/"):
			problems = append(problems, "reads the subresource "+resource)
		case resource == rbac.ResourceAll && slices.ContainsFunc(rule.APIGroups, builtin):
			problems = append(problems, fmt.Sprintf("reads every resource of %q", rule.APIGroups))
		}
	}
	return problems
}

func isReview(rule rbac.PolicyRule) bool {
	return slices.Equal(rule.Verbs, []string{"create"}) && len(rule.Resources) > 0 &&
		!slices.ContainsFunc(names(rule), func(name string) bool { return !slices.Contains(reviews, name) })
}

// names are the rule's resources with their groups, as in apps/deployments.
func names(rule rbac.PolicyRule) (names []string) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			names = append(names, group+"/"+resource)
		}
	}
	return names
}

// covers tells whether the rule grants anything on a resource.
func covers(rule rbac.PolicyRule, group, resource string) bool {
	has := func(list []string, name string) bool {
		return slices.Contains(list, name) || slices.Contains(list, "*")
	}
	return has(rule.APIGroups, group) && has(rule.Resources, resource)
}

func (b binding) binds(role role) bool {
	return b.ref.Kind == role.kind && b.ref.Name == role.GetName() && b.GetNamespace() == role.GetNamespace()
}

// isOurs tells whether a subject is the account that the gateway runs with.
func (r *Rendering) isOurs(subject rbac.Subject) bool {
	for _, deployment := range r.deployments {
		if subject.Kind == rbac.ServiceAccountKind && subject.Namespace == deployment.Namespace &&
			subject.Name == deployment.Spec.Template.Spec.ServiceAccountName {
			return true
		}
	}
	return false
}

// unreadable are those resources of a cluster, as deployments.apps, that no role lets the gateway watch.
func unreadable(r *Rendering, resources []string) (missing []string) {
	for _, name := range resources {
		resource, group, _ := strings.Cut(name, ".")
		readable := slices.ContainsFunc(r.roles, func(role role) bool {
			return slices.ContainsFunc(role.rules, func(rule rbac.PolicyRule) bool {
				return covers(rule, group, resource) && sameSet(rule.Verbs, readVerbs)
			})
		})
		if !readable {
			missing = append(missing, name)
		}
	}
	return missing
}

func sameSet(one, other []string) bool {
	one, other = slices.Clone(one), slices.Clone(other)
	slices.Sort(one)
	slices.Sort(other)
	return slices.Equal(one, other)
}
