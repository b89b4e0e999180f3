// Command controlplane is a Kubernetes control plane in one file, for tests: a real etcd, kube-apiserver and
// kube-controller-manager, linked from their own packages, and the role `up`, which runs them together until its standard
// input closes.
package main

import (
	"fmt"
	"io"
	"os"

	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

const usage = `usage:
  controlplane up [FLAGS] DIR                     run everything in DIR until standard input closes; a line there,
                                                  restart kube-apiserver or kill kube-apiserver, is repeated on
                                                  standard output when the API server is ready again
      --apiserver-flag FLAG   one more flag of the API server; may be repeated
      --audit                 write requests and responses of all writes to DIR/audit.log
      --leave-pods-of NAMESPACE   report nothing of the pods of this namespace
      --kube-apiserver FILE   run this program as the API server
      --temporary             remove DIR at the end
  controlplane etcd DIR                           one etcd member on a free port of 127.0.0.1
  controlplane bulk --etcd URL [FLAGS]            write the records of many releases straight into an etcd
      --releases N            so many releases (10000)
      --records N             so many records each, at least 3 (3)
      --faulty-every N        one release in so many has a fault (0: none)
  controlplane kube-apiserver FLAGS...
  controlplane kube-controller-manager FLAGS...
`

// Roles by name. Each takes the arguments after its name and returns the exit code.
var roles = map[string]func(args []string) int{
	"up":   runUp,
	"etcd": runEtcd,
	"bulk": runBulk,
	"kube-apiserver": func([]string) int {
		return cli.Run(apiserver.NewAPIServerCommand())
	},
	"kube-controller-manager": func([]string) int {
		return cli.Run(controllers.NewControllerManagerCommand())
	},
}

func main() {
	if len(os.Args) < 2 {
		fail(os.Stderr)
	}
	// The linked programs read os.Args themselves.
	os.Args = os.Args[1:]
	name := os.Args[0]
	switch name {
	case "help", "-h", "--help":
		fmt.Print(usage)
		return
	}
	role, found := roles[name]
	if !found {
		fmt.Fprintf(os.Stderr, "controlplane: no role %q\n", name)
		fail(os.Stderr)
	}
	os.Exit(role(os.Args[1:]))
}

func fail(w io.Writer) {
	fmt.Fprint(w, usage)
	os.Exit(2)
}
