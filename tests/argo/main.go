// Command argo stands in for Argo CD's application-controller, for tests: it does one sync of an Application with the
// library that the controller is built on, and so writes the objects as the controller does. The Application itself it
// neither reads nor writes. The result is one line of JSON on standard output.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// Where a write names no field manager, the API server takes the name of the program.
	program = "argocd-application-controller"
	// The field manager of objects.
	manager = "argocd-controller"
	// The mark on objects, which names the Application and the object.
	trackingID = "argocd.argoproj.io/tracking-id"
)

// Exit codes: the sync failed, or there was none.
const (
	exitFailed    = 1
	exitCannotRun = 2
)

// application is what a sync needs to know of an Application.
type application struct {
	// As in the marks: NAMESPACE_NAME, or NAME in Argo CD's own namespace.
	name string
	// Its objects are all in this namespace.
	namespace  string
	serverSide bool
	prune      bool
}

// result is how a sync ended.
type result struct {
	Phase     common.OperationPhase `json:"phase"`
	Message   string                `json:"message"`
	Resources []resource            `json:"resources"`
}

type resource struct {
	Kind    string            `json:"kind"`
	Name    string            `json:"name"`
	Status  common.ResultCode `json:"status"`
	Message string            `json:"message"`
}

func main() {
	// The library makes clients of its own, whose user agent is the name of the program.
	os.Args[0] = program
	result, err := run(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "argo: %v\n", err)
		os.Exit(exitCannotRun)
	}
	line, err := json.Marshal(result)
	if err != nil {
		// It holds nothing but strings.
		panic(err)
	}
	fmt.Printf("%s\n", line)
	if !result.Phase.Successful() {
		fmt.Fprintf(os.Stderr, "argo: %s: %s\n", result.Phase, result.Message)
		os.Exit(exitFailed)
	}
}

func run(args []string) (*result, error) {
	var app application
	flags := flag.NewFlagSet("argo", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the API server")
	objects := flags.String("objects", "[]", "what the source renders to, with the marks: a JSON list")
	flags.StringVar(&app.name, "application", "", "the Application, as its marks name it")
	flags.StringVar(&app.namespace, "namespace", "", "where the objects are")
	flags.BoolVar(&app.serverSide, "server-side", false, "the sync option ServerSideApply")
	flags.BoolVar(&app.prune, "prune", false, "delete objects with a mark that the source does not have")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if app.name == "" || app.namespace == "" || flags.NArg() > 0 {
		return nil, errors.New("--application and --namespace are needed, and no other arguments")
	}
	var rendered []*unstructured.Unstructured
	if err := json.Unmarshal([]byte(*objects), &rendered); err != nil {
		return nil, fmt.Errorf("--objects: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return nil, err
	}
	// There is one sync in this process, and a test waits for it.
	config.QPS = -1
	return app.sync(config, rendered)
}

// sync applies what the source renders to. It does one step: hooks and waves would need more, and count as failed.
func (a *application) sync(config *rest.Config, rendered []*unstructured.Unstructured) (*result, error) {
	for _, object := range rendered {
		object.SetNamespace(a.namespace)
	}
	kubectl := &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}
	cluster := cache.NewClusterCache(config,
		cache.SetKubectl(kubectl),
		cache.SetLogr(logr.Discard()),
		cache.SetNamespaces([]string{a.namespace}),
		cache.SetPopulateResourceInfoHandler(func(object *unstructured.Unstructured, _ bool) (any, bool) {
			return nil, a.owns(object)
		}),
	)
	if err := cluster.EnsureSynced(); err != nil {
		return nil, err
	}
	live, err := cluster.GetManagedLiveObjs(rendered, func(r *cache.Resource) bool { return a.owns(r.Resource) })
	if err != nil {
		return nil, err
	}
	foreground := metav1.DeletePropagationForeground
	operation, cleanup, err := sync.NewSyncContext("main", sync.Reconcile(rendered, live, a.namespace, cluster),
		config, config, kubectl, a.namespace,
		sync.WithLogr(logr.Discard()),
		sync.WithPrune(a.prune),
		sync.WithServerSideApply(a.serverSide),
		sync.WithServerSideApplyManager(manager),
		sync.WithClientSideApplyMigration(true, common.DefaultClientSideApplyMigrationManager),
		sync.WithPrunePropagationPolicy(&foreground),
	)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	operation.Sync()
	return state(operation), nil
}

// owns says whether an object has a mark of the Application that names the object itself.
func (a *application) owns(object *unstructured.Unstructured) bool {
	if object == nil {
		return false
	}
	group, kind := object.GroupVersionKind().Group, object.GetKind()
	id := fmt.Sprintf("%s:%s/%s:%s/%s", a.name, group, kind, object.GetNamespace(), object.GetName())
	return object.GetAnnotations()[trackingID] == id
}

// state is how an operation ended.
func state(operation sync.SyncContext) *result {
	phase, message, synced := operation.GetState()
	ended := result{Phase: phase, Message: message, Resources: []resource{}}
	for _, it := range synced {
		key := it.ResourceKey
		ended.Resources = append(ended.Resources, resource{key.Kind, key.Name, it.Status, it.Message})
	}
	return &ended
}
