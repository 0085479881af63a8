package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
)

// patience is how long a resource may take to sync.
const patience = 2 * time.Minute

func defineGateway(flags *flag.FlagSet) run {
	kubeconfig := flags.String("kubeconfig", "", "`file` that names the cluster (its current context)")
	return func(ctx context.Context, output io.Writer) error {
		config, err := clusterOf(*kubeconfig)
		if err != nil {
			return err
		}
		client, err := connect(config, false)
		if err != nil {
			return err
		}
		resources, err := dynamic.NewForConfig(config)
		if err != nil {
			return err
		}
		ctx, fail := context.WithCancelCause(ctx)
		gateway, err := newGateway(ctx, fail, client, resources)
		if err != nil {
			return err
		}
		return serve(ctx, gateway.handler(), output)
	}
}

// gateway answers lists from memory: deployments from a typed cache, any resource from a dynamic one that begins when it
// is first asked for.
type gateway struct {
	deployments listers.DeploymentLister
	resources   dynamicinformer.DynamicSharedInformerFactory
	discovery   discovery.DiscoveryInterface
	stop        <-chan struct{}
	lock        sync.RWMutex
	synced      map[schema.GroupVersionResource]cache.GenericLister
}

// newGateway returns when deployments and pods have synced. An error of these two ends everything.
func newGateway(
	ctx context.Context, fail context.CancelCauseFunc, client kubernetes.Interface, resources dynamic.Interface,
) (*gateway, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	deployments := factory.Apps().V1().Deployments()
	synced := deployments.Informer().HasSyncedChecker()
	g := &gateway{
		deployments: deployments.Lister(),
		resources:   dynamicinformer.NewDynamicSharedInformerFactory(resources, 0),
		discovery:   client.Discovery(),
		stop:        ctx.Done(),
		synced:      map[schema.GroupVersionResource]cache.GenericLister{},
	}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for _, informer := range []cache.SharedInformer{deployments.Informer(), g.resources.ForResource(pods).Informer()} {
		if err := failOnError(informer, fail); err != nil {
			return nil, err
		}
	}
	factory.StartWithContext(ctx)
	if _, err := g.lister(ctx, pods); err != nil {
		return nil, err
	}
	if !cache.WaitFor(ctx, "", synced) {
		return nil, context.Cause(ctx)
	}
	return g, nil
}

func (g *gateway) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /deploy", func(w http.ResponseWriter, request *http.Request) {
		found, err := g.deployments.List(selector(request.URL.Query()))
		answerList(w, "data", found, err)
	})
	mux.HandleFunc("GET /{group}/{version}/{resource}", func(w http.ResponseWriter, request *http.Request) {
		resource := schema.GroupVersionResource{
			Group: request.PathValue("group"), Version: request.PathValue("version"), Resource: request.PathValue("resource"),
		}
		if resource.Group == "core" {
			resource.Group = ""
		}
		lister, err := g.lister(request.Context(), resource)
		if err != nil {
			answerList[any](w, "msg", nil, err)
			return
		}
		found, err := lister.List(selector(request.URL.Query()))
		answerList(w, "msg", found, err)
	})
	return mux
}

// lister is a resource's cache, synced. An informer of a resource that does not exist would try for ever: discovery is
// asked first.
func (g *gateway) lister(ctx context.Context, resource schema.GroupVersionResource) (cache.GenericLister, error) {
	g.lock.RLock()
	lister, ok := g.synced[resource]
	g.lock.RUnlock()
	if ok {
		return lister, nil
	}
	served, err := g.discovery.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return nil, err
	}
	exists := false
	for _, known := range served.APIResources {
		exists = exists || known.Name == resource.Resource
	}
	if !exists {
		return nil, errors.NewNotFound(schema.GroupResource{Resource: "resource"}, resource.Resource)
	}
	informer := g.resources.ForResource(resource)
	synced := informer.Informer().HasSyncedChecker()
	g.resources.Start(g.stop)
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if !cache.WaitFor(ctx, "", synced) {
		return nil, fmt.Errorf("%s has not synced: %w", resource.Resource, context.Cause(ctx))
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	g.synced[resource] = informer.Lister()
	return informer.Lister(), nil
}

// selector is what `labels[key]=value` parameters ask for: all of them must hold.
func selector(query url.Values) labels.Selector {
	wanted := labels.Set{}
	for name, values := range query {
		if key, ok := strings.CutPrefix(name, "labels["); ok && strings.HasSuffix(key, "]") {
			wanted[strings.TrimSuffix(key, "]")] = values[len(values)-1]
		}
	}
	return labels.SelectorFromSet(wanted)
}

// answerList answers {member: [object, …]}, or {"msg": …} for an error.
func answerList[T any](w http.ResponseWriter, member string, found []T, err error) {
	if err == nil {
		answerJSON(w, http.StatusOK, map[string][]T{member: append([]T{}, found...)})
		return
	}
	code := http.StatusInternalServerError
	if errors.IsNotFound(err) {
		code = http.StatusNotFound
	}
	answerJSON(w, code, map[string]string{"msg": err.Error()})
}
