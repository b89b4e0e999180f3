package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
)

// serveCommands is the only argument with which this program runs the commands that it reads from standard input, until that ends. The
// tests run ten thousand, and most of the time of each would be the start of a process.
const serveCommands = "serve-commands"

// command is a line of standard input.
type command struct {
	ID         int    `json:"id"`
	Kubeconfig string `json:"kubeconfig"`
	// Where discovery is kept.
	Cache     string   `json:"cache"`
	Arguments []string `json:"arguments"`
}

// result is a line of standard output. The order is that in which commands end.
type result struct {
	ID     int    `json:"id"`
	Code   int    `json:"code"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// exit is the panic in place of the end of the process.
type exit struct {
	message string
	code    int
}

func serve() {
	// What a library prints is no result.
	results := json.NewEncoder(os.Stdout)
	os.Stdout = os.Stderr
	kubectlutil.BehaviorOnFatal(func(message string, code int) { panic(exit{message, code}) })
	var writing sync.Mutex
	for commands := json.NewDecoder(os.Stdin); ; {
		var c command
		if commands.Decode(&c) != nil {
			return
		}
		go func() {
			ended := c.run()
			writing.Lock()
			defer writing.Unlock()
			// Without a reader, standard input ends too.
			_ = results.Encode(ended)
		}()
	}
}

func (c command) run() (ended result) {
	var stdout, stderr buffer
	ended.ID = c.ID
	defer func() {
		if reason := recover(); reason != nil {
			e, ok := reason.(exit)
			if !ok {
				panic(reason)
			}
			ended.Code = e.code
			if e.message != "" {
				fmt.Fprintln(&stderr, strings.TrimSuffix(e.message, "\n"))
			}
		}
		ended.Stdout, ended.Stderr = stdout.String(), stderr.String()
	}()
	kubectlutil.CheckErr(cli.RunNoErrOutput(c.kubectl(&stdout, &stderr)))
	return ended
}

// building keeps commands from being built side by side: this changes state of their packages.
var building sync.Mutex

// kubectl is the command as `NewDefaultKubectlCommand` builds it, but for plugins, of which there are none.
func (c command) kubectl(stdout, stderr *buffer) *cobra.Command {
	building.Lock()
	defer building.Unlock()
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: stdout, ErrOut: stderr}
	flags := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(300).WithDiscoveryQPS(50)
	flags.KubeConfig, flags.CacheDir = &c.Kubeconfig, &c.Cache
	// kubectl has one handler for its process.
	warnings := rest.NewWarningWriter(stderr, rest.WarningWriterOptions{Deduplicate: true})
	flags.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.WarningHandler = warnings
		return config
	})
	root := kubectl.NewKubectlCommand(kubectl.KubectlOptions{
		Arguments:   append([]string{"kubectl"}, c.Arguments...),
		ConfigFlags: flags,
		IOStreams:   streams,
	})
	root.SetArgs(c.Arguments)
	root.SetIn(streams.In)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root
}

// buffer is written to by several goroutines of a command.
type buffer struct {
	mutex sync.Mutex
	bytes bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.bytes.Write(p)
}

func (b *buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.bytes.String()
}
