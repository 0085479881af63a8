package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// defineFollow is no figure: what client-go does when its server goes away and comes back.
func defineFollow(flags *flag.FlagSet) run {
	server := flags.String("server", "", "`URL` of the server")
	return func(ctx context.Context, output io.Writer) error {
		if *server == "" {
			return usageError("--server is needed")
		}
		say := sayer(output)
		config := &rest.Config{Host: *server}
		sayRequests(config, say)
		client, err := connect(config, true)
		if err != nil {
			return err
		}
		factory := informers.NewSharedInformerFactory(client, 0)
		informer := factory.Core().V1().ConfigMaps().Informer()
		_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { say("added", nameOf(object)) },
			UpdateFunc: func(_, object any) { say("updated", nameOf(object)) },
			DeleteFunc: func(object any) { say("deleted", nameOf(object)) },
		})
		if err != nil {
			return err
		}
		factory.StartWithContext(ctx)
		return stay(ctx)
	}
}

// sayer writes whole lines, whoever has something to say.
func sayer(output io.Writer) func(...any) {
	var writing sync.Mutex
	return func(words ...any) {
		writing.Lock()
		defer writing.Unlock()
		fmt.Fprintln(output, words...)
	}
}

// sayRequests makes the client say which lists and watches of config maps are answered. A list that comes as a stream is
// a list.
func sayRequests(config *rest.Config, say func(...any)) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if query := request.URL.Query(); err == nil && request.URL.Path == "/api/v1/configmaps" {
				what := "list"
				if query.Get("watch") == "true" && query.Get("sendInitialEvents") != "true" {
					what = "watch"
				}
				say(what, response.StatusCode)
			}
			return response, err
		})
	})
}

// nameOf is also the name of what is known to be gone without its last state.
func nameOf(object any) string {
	if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
		object = unknown.Obj
	}
	if configMap, is := object.(*corev1.ConfigMap); is {
		return configMap.Name
	}
	return fmt.Sprintf("%T", object)
}
