package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/cli-runtime/pkg/resource"
)

// drifted is an object that differs from what the release declares.
type drifted struct {
	info     *resource.Info
	declared *unstructured.Unstructured
	// Nil: it is gone.
	patch []byte
}

// drift finds out by a dry run of every object what the release's apply would change. It looks only where it is asked
// to and nothing else is due.
func (f *flux) drift(ctx context.Context, history []*release.Release) ([]drifted, error) {
	if !f.correctDrift || len(history) == 0 {
		return nil, nil
	}
	r := history[len(history)-1]
	if r.Info.Status != common.StatusDeployed || !f.inSync(r) {
		return nil, nil
	}
	declared, err := f.helm.KubeClient.Build(bytes.NewBufferString(r.Manifest), false)
	if err != nil {
		return nil, err
	}
	var found []drifted
	for _, info := range declared {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		object, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("%s is %T, no unstructured object", info.Name, info.Object)
		}
		mark(object, r)
		live, wanted, err := compare(ctx, info, object)
		if err != nil {
			return nil, err
		}
		if live == nil {
			found = append(found, drifted{info: info, declared: object})
			continue
		}
		patch, err := difference(live, wanted)
		if err != nil {
			return nil, err
		}
		if patch != nil {
			found = append(found, drifted{info: info, declared: object, patch: patch})
		}
	}
	return found, nil
}

// correct creates or patches every one of these, and returns what they are. No record is written: the release stays
// deployed.
func correct(found []drifted) ([]string, error) {
	var corrected []string
	var failed []error
	for _, d := range found {
		helper := resource.NewHelper(d.info.Client, d.info.Mapping).WithFieldManager(helmController)
		name := d.info.Mapping.GroupVersionKind.Kind + "/" + d.info.Name
		var err error
		if d.patch == nil {
			_, err = helper.Create(d.info.Namespace, false, d.declared)
		} else {
			_, err = helper.Patch(d.info.Namespace, d.info.Name, types.MergePatchType, d.patch, nil)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			continue
		}
		corrected = append(corrected, name)
	}
	return corrected, errors.Join(failed...)
}

// compare returns an object as it is, nil if it is gone, and as the release's apply would leave it.
func compare(ctx context.Context, info *resource.Info, declared *unstructured.Unstructured) (live, wanted *unstructured.Unstructured, err error) {
	for ctx.Err() == nil {
		object, err := resource.NewHelper(info.Client, info.Mapping).Get(info.Namespace, info.Name)
		gone := apierrors.IsNotFound(err)
		if err != nil && !gone {
			return nil, nil, err
		}
		wanted, err := dryRun(info, declared)
		if err != nil || gone {
			return nil, wanted, err
		}
		live := object.(*unstructured.Unstructured)
		// Otherwise a controller wrote in between, and its change would look like drift.
		if live.GetResourceVersion() == wanted.GetResourceVersion() {
			return live, wanted, nil
		}
	}
	return nil, nil, ctx.Err()
}

// dryRun asks the API server what the object would be after the release's apply.
func dryRun(info *resource.Info, declared *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	body, err := declared.MarshalJSON()
	if err != nil {
		return nil, err
	}
	force := true
	helper := resource.NewHelper(info.Client, info.Mapping).WithFieldManager(helmController).DryRun(true)
	object, err := helper.Patch(info.Namespace, info.Name, types.ApplyPatchType, body, &metav1.PatchOptions{Force: &force})
	if err != nil {
		return nil, err
	}
	return object.(*unstructured.Unstructured), nil
}

// difference is a merge patch from one object to another, or nil. Flux sends the same change as a JSON patch; at
// admission both are the object that comes out.
func difference(from, to *unstructured.Unstructured) ([]byte, error) {
	var texts [2][]byte
	for i, object := range []*unstructured.Unstructured{from, to} {
		object = object.DeepCopy()
		// What the server counts, in a dry run too.
		object.SetManagedFields(nil)
		object.SetResourceVersion("")
		object.SetGeneration(0)
		text, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		texts[i] = text
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(texts[0], texts[1], texts[0])
	if err != nil || string(patch) == "{}" {
		return nil, err
	}
	return patch, nil
}

// mark puts Helm's marks on an object, which are not in the manifest.
func mark(object *unstructured.Unstructured, r *release.Release) {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels["app.kubernetes.io/managed-by"] = "Helm"
	annotations["meta.helm.sh/release-name"] = r.Name
	annotations["meta.helm.sh/release-namespace"] = r.Namespace
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
}
