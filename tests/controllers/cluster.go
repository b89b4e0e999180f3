package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// noSchemas keeps Helm from checking what it renders against the API server's schemas, which takes most of its CPU time.
const noSchemas = true

// description is what the objects of both controllers say about a release.
type description struct {
	kubeconfig string
	chart      string
	values     values
}

// values are those of the chart, given as a JSON object.
type values map[string]any

func (v *values) String() string { return "{}" }

func (v *values) Set(text string) error { return json.Unmarshal([]byte(text), (*map[string]any)(v)) }

// newFlags returns the flags of a role with those that all roles have.
func newFlags(role string, d *description) *flag.FlagSet {
	flags := flag.NewFlagSet(role, flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	flags.StringVar(&d.kubeconfig, "kubeconfig", "", "how to reach the API server; default: as kubectl")
	flags.StringVar(&d.chart, "chart", "", "the chart's directory")
	d.values = values{}
	flags.Var(&d.values, "values", "the chart's values, a JSON object")
	return flags
}

// required fails for the first flag that has no value.
func required(flags *flag.FlagSet, names ...string) error {
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	for _, name := range names {
		if flags.Lookup(name).Value.String() == "" {
			return fmt.Errorf("--%s is needed", name)
		}
	}
	return nil
}

// cluster is the API server as a controller sees it.
type cluster struct {
	// What Helm makes its own clients from.
	getter genericclioptions.RESTClientGetter
	client kubernetes.Interface
}

// connect reaches the API server as the kubeconfig's user, or as somebody else by name alone. Objects without a
// namespace go to the given one.
func connect(kubeconfig, as, namespace, userAgent string) (*cluster, error) {
	getter := genericclioptions.NewConfigFlags(true)
	getter.KubeConfig = &kubeconfig
	getter.Namespace = &namespace
	getter.Impersonate = &as
	getter.WrapConfigFn = func(config *rest.Config) *rest.Config {
		// Where a write names no field manager, the API server takes this up to the slash.
		config.UserAgent = userAgent + "/v1"
		// There is one reconcile in this process, and a test waits for it.
		config.QPS = -1
		return config
	}
	config, err := getter.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &cluster{getter: getter, client: client}, nil
}
