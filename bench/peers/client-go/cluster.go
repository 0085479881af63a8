package main

import (
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// clusterOf is the cluster that a kubeconfig's current context names.
func clusterOf(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return nil, usageError("--kubeconfig is needed")
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

// connect makes a client with the defaults of client-go, except for the content type if JSON is forced. It fails when
// the server does not answer, where an informer would try for ever.
func connect(config *rest.Config, json bool) (*kubernetes.Clientset, error) {
	if json {
		config.ContentType = runtime.ContentTypeJSON
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if _, err := client.Discovery().ServerVersion(); err != nil {
		return nil, fmt.Errorf("%s: %w", config.Host, err)
	}
	return client, nil
}

// sayContent makes the client say once how it gets its pods: what it accepts, what it is answered, and whether the list
// comes as a stream.
func sayContent(config *rest.Config, problems io.Writer) {
	var once sync.Once
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && request.URL.Path == "/api/v1/pods" {
				once.Do(func() {
					fmt.Fprintf(problems, "pods: accepts %s; answered in %s; streaming list: %t; %s\n",
						request.Header.Get("Accept"), response.Header.Get("Content-Type"),
						request.URL.Query().Get("sendInitialEvents") == "true", response.Proto)
				})
			}
			return response, err
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
