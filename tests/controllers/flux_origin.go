package main

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// origin is a HelmRelease as NAMESPACE/NAME. As a post renderer it puts the labels on the release's objects, hooks
// included, by which Flux finds its way back.
type origin string

func (o origin) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	namespace, name, found := strings.Cut(string(o), "/")
	if !found {
		return nil, fmt.Errorf("--origin is NAMESPACE/NAME, not %q", string(o))
	}
	objects, err := kio.ParseAll(rendered.String())
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		err := object.PipeE(
			yaml.Tee(yaml.SetLabel("helm.toolkit.fluxcd.io/name", name)),
			yaml.SetLabel("helm.toolkit.fluxcd.io/namespace", namespace),
		)
		if err != nil {
			return nil, err
		}
	}
	labelled, err := kio.StringAll(objects)
	return bytes.NewBufferString(labelled), err
}
