// Command readers answers what the Go readers that Interlock must agree with make of an input: sigs.k8s.io/yaml, the resource builder
// of kubectl that Helm uses, encoding/json into Helm's release, and regexp. For tests/it/readers.rs.
//
// It reads a question a line, and answers each with a line.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"

	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"
)

// A question has one of these.
type question struct {
	// A YAML document.
	YAML *string `json:"yaml"`
	// A manifest, which Helm applies.
	Manifest *string `json:"manifest"`
	// The JSON of a record.
	Release *string `json:"release"`
	// A regular expression, for a text.
	Pattern *string `json:"pattern"`
	Text    string  `json:"text"`
}

type answer struct {
	// Why it cannot be read.
	Error string `json:"error,omitempty"`
	// The document as JSON.
	JSON json.RawMessage `json:"json,omitempty"`
	// The objects that the builder finds.
	Objects []json.RawMessage `json:"objects,omitempty"`
	// The objects that `helm uninstall` finds, which splits the manifest itself.
	Uninstalled []json.RawMessage `json:"uninstalled,omitempty"`
	Release     *release.Release  `json:"release,omitempty"`
	Matches     bool              `json:"matches,omitempty"`
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	answers := json.NewEncoder(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			fmt.Fprintln(os.Stderr, "readers:", err)
			os.Exit(1)
		}
		if err := answers.Encode(read(asked)); err != nil {
			fmt.Fprintln(os.Stderr, "readers:", err)
			os.Exit(1)
		}
	}
}

// read answers a question. A reader that panics cannot read its input.
func read(asked question) (found answer) {
	defer func() {
		if problem := recover(); problem != nil {
			found = answer{Error: fmt.Sprint("panic: ", problem)}
		}
	}()
	var err error
	switch {
	case asked.YAML != nil:
		found.JSON, err = yaml.YAMLToJSON([]byte(*asked.YAML))
	case asked.Manifest != nil:
		if found.Objects, err = objects(*asked.Manifest); err == nil {
			found.Uninstalled, err = uninstalled(*asked.Manifest)
		}
	case asked.Release != nil:
		found.Release = &release.Release{}
		err = json.Unmarshal([]byte(*asked.Release), found.Release)
	case asked.Pattern != nil:
		var compiled *regexp.Regexp
		// As kustomize anchors it, for Flux.
		if compiled, err = regexp.Compile("^(?:" + *asked.Pattern + ")$"); err == nil {
			found.Matches = compiled.MatchString(asked.Text)
		}
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	return found
}

// objects are those that Helm applies.
func objects(manifest string) ([]json.RawMessage, error) {
	infos, err := resource.NewLocalBuilder().
		Unstructured().
		ContinueOnError().
		Stream(strings.NewReader(manifest), "").
		Flatten().
		Do().Infos()
	if err != nil {
		return nil, err
	}
	found := []json.RawMessage{}
	for _, info := range infos {
		object, err := json.Marshal(info.Object)
		if err != nil {
			return nil, err
		}
		found = append(found, bytes.TrimSpace(object))
	}
	return found, nil
}

// uninstalled are the objects that Helm deletes.
func uninstalled(manifest string) ([]json.RawMessage, error) {
	_, files, err := util.SortManifests(util.SplitManifests(manifest), nil, util.UninstallOrder)
	if err != nil {
		return nil, err
	}
	var joined strings.Builder
	for _, file := range files {
		joined.WriteString("\n---\n" + file.Content)
	}
	return objects(joined.String())
}
