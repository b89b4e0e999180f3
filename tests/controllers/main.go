// Command controllers stands in for the controllers that drive Helm releases in a cluster, for tests: each role does one
// reconcile with the Helm SDK, or the library for server-side apply, that its controller is built on, and writes what the controller writes, in its order and
// under its names. What it did is one line of JSON on standard output.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage:
  controllers flux FLAGS...   one reconcile of a HelmRelease, as Flux's helm-controller does it
  controllers olm FLAGS...    one reconcile of a ClusterExtension, as OLM's operator-controller does it
  controllers kustomize FLAGS...
                              one reconcile of a Kustomization, as Flux's kustomize-controller does it
A role prints its flags with --help.

exit codes: 0 the release is as described, 1 an action failed, 2 it could not run
`

// Exit codes.
const (
	exitFailed    = 1
	exitCannotRun = 2
)

// Roles by name. Each takes the arguments after its name and says whether the release is as described; an error means
// that it could not run at all.
var roles = map[string]func(ctx context.Context, args []string, report *report) (bool, error){
	"flux":      runFlux,
	"olm":       runOLM,
	"kustomize": runKustomize,
}

func main() {
	if len(os.Args) < 2 {
		fail(os.Stderr)
	}
	name, args := os.Args[1], os.Args[2:]
	if name == "help" || name == "-h" || name == "--help" {
		fmt.Print(usage)
		return
	}
	role, found := roles[name]
	if !found {
		fmt.Fprintf(os.Stderr, "controllers: no role %q\n", name)
		fail(os.Stderr)
	}
	// A controller that is told to end cancels its actions, which then record that they failed.
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	var report report
	reached, err := role(ctx, args, &report)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil || len(report.Actions) > 0 {
		report.print(os.Stdout)
	}
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "controllers %s: %v\n", name, err)
		os.Exit(exitCannotRun)
	case !reached:
		os.Exit(exitFailed)
	}
}

func fail(w io.Writer) {
	fmt.Fprint(w, usage)
	os.Exit(exitCannotRun)
}
