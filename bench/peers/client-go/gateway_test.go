package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic/fake"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

func labelled(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: labels}
}

func TestBothRoutesAnswerFromTheirCaches(t *testing.T) {
	client := kubernetesfake.NewClientset(
		&appsv1.Deployment{ObjectMeta: labelled("coredns", map[string]string{"k8s-app": "kube-dns", "tier": "system"})},
		&appsv1.Deployment{ObjectMeta: labelled("web", map[string]string{"k8s-app": "web"})},
	)
	client.Resources = []*metav1.APIResourceList{{
		GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods"}, {Name: "secrets"}},
	}}
	resources := fake.NewSimpleDynamicClient(scheme.Scheme,
		&corev1.Pod{ObjectMeta: labelled("pod-1", map[string]string{"app": "a"})},
		&corev1.Pod{ObjectMeta: labelled("pod-2", map[string]string{"app": "b"})},
		&corev1.Secret{ObjectMeta: labelled("secret", nil)},
	)
	ctx, fail := context.WithCancelCause(t.Context())
	defer fail(nil)
	gateway, err := newGateway(ctx, fail, client, resources)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gateway.handler())
	defer server.Close()

	for _, expected := range []struct {
		path, member string
		names        []string
	}{
		{"/deploy", "data", []string{"coredns", "web"}},
		{"/deploy?labels[k8s-app]=kube-dns", "data", []string{"coredns"}},
		{"/deploy?labels[k8s-app]=kube-dns&labels[tier]=system", "data", []string{"coredns"}},
		{"/deploy?labels[k8s-app]=kube-dns&labels[tier]=none", "data", nil},
		{"/core/v1/pods", "msg", []string{"pod-1", "pod-2"}},
		{"/core/v1/pods?labels[app]=b", "msg", []string{"pod-2"}},
		{"/core/v1/secrets", "msg", []string{"secret"}},
	} {
		code, body := get(t, server.URL+expected.path)
		var answer map[string][]struct{ Metadata metav1.ObjectMeta }
		if err := json.Unmarshal(body, &answer); err != nil || code != http.StatusOK || answer[expected.member] == nil {
			t.Errorf("%s: %d %s %v", expected.path, code, body, err)
			continue
		}
		var names []string
		for _, object := range answer[expected.member] {
			names = append(names, object.Metadata.Name)
		}
		if slices.Sort(names); !slices.Equal(names, expected.names) {
			t.Errorf("%s: %v", expected.path, names)
		}
	}
	for _, path := range []string{"/core/v1/podz", "/apps/v9/deployments"} {
		if code, body := get(t, server.URL+path); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

func get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}
