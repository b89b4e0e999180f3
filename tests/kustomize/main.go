// Command kustomize is what `kubectl kustomize` runs, for tests: the same command of the same module. The harness builds it with
// the dependencies of an older or a newer kubectl; go.mod here has those of the newest.
package main

import (
	"os"

	"sigs.k8s.io/kustomize/kustomize/v5/commands/build"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	command := build.NewCmdBuild(filesys.MakeFsOnDisk(), build.MakeHelp("kustomize", "build"), os.Stdout)
	if command.Execute() != nil {
		os.Exit(1)
	}
}
