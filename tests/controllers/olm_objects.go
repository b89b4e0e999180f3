package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/resource"
)

// owner is the ClusterExtension that records and objects belong to.
type owner struct {
	name string
	// Empty: nothing refers to it, and the garbage collector lets everything be.
	uid string
}

// references are the owner references of what belongs to it.
func (o owner) references() []metav1.OwnerReference {
	if o.uid == "" {
		return nil
	}
	yes := true
	return []metav1.OwnerReference{{
		APIVersion:         "olm.operatorframework.io/v1",
		Kind:               "ClusterExtension",
		Name:               o.name,
		UID:                types.UID(o.uid),
		Controller:         &yes,
		BlockOwnerDeletion: &yes,
	}}
}

// Run is the post renderer: it puts OLM's marks on the objects (hooks never get here) and writes them as OLM does, one
// JSON document after the other with nothing but a newline in between.
func (o owner) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	documents := yaml.NewYAMLOrJSONDecoder(rendered, 4096)
	marked := &bytes.Buffer{}
	lines := json.NewEncoder(marked)
	for {
		var object unstructured.Unstructured
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return marked, nil
		} else if err != nil {
			return nil, err
		}
		if len(object.Object) == 0 {
			continue
		}
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["olm.operatorframework.io/owner-kind"] = "ClusterExtension"
		labels["olm.operatorframework.io/owner-name"] = o.name
		object.SetLabels(labels)
		if references := o.references(); references != nil {
			object.SetOwnerReferences(references)
		}
		if err := lines.Encode(object.Object); err != nil {
			return nil, err
		}
	}
}

// putRight creates and patches objects that differ from what the release declares, without a record, and returns what
// they were.
func (o *olm) putRight(ctx context.Context, r *release.Release) ([]string, error) {
	declared, err := o.helm.KubeClient.Build(bytes.NewBufferString(r.Manifest), false)
	if err != nil {
		return nil, err
	}
	var corrected []string
	for _, info := range declared {
		if err := ctx.Err(); err != nil {
			return corrected, err
		}
		name := info.Mapping.GroupVersionKind.Kind + "/" + info.Name
		drifted, err := restore(info)
		if err != nil {
			return corrected, fmt.Errorf("%s: %w", name, err)
		}
		if drifted {
			corrected = append(corrected, name)
		}
	}
	return corrected, nil
}

// restore says whether the object differed. It names no field manager.
func restore(info *resource.Info) (bool, error) {
	helper := resource.NewHelper(info.Client, info.Mapping)
	live, err := helper.Get(info.Namespace, info.Name)
	if apierrors.IsNotFound(err) {
		_, err := helper.Create(info.Namespace, true, info.Object)
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	patch, kind, err := difference3(live, info)
	if err != nil || string(patch) == "{}" {
		return false, err
	}
	_, err = helper.Patch(info.Namespace, info.Name, kind, patch, nil)
	return err == nil, err
}

// difference3 is the patch that gives the live object the declared fields again and leaves it all others.
func difference3(live runtime.Object, info *resource.Info) ([]byte, types.PatchType, error) {
	have, err := json.Marshal(live)
	if err != nil {
		return nil, "", err
	}
	want, err := json.Marshal(info.Object)
	if err != nil {
		return nil, "", err
	}
	typed := kube.AsVersioned(info)
	if _, custom := typed.(*unstructured.Unstructured); custom {
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(want, want, have)
		return patch, types.MergePatchType, err
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, "", err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(want, want, have, schema, true)
	return patch, types.StrategicMergePatchType, err
}
