package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/cli-runtime/pkg/resource"
)

// putRight brings objects back that are gone and patches those that differ from what the release declares, and returns
// what they were. No record is written: the release stays deployed.
func (f *flux) putRight(ctx context.Context, r *release.Release) ([]string, error) {
	declared, err := f.helm.KubeClient.Build(bytes.NewBufferString(r.Manifest), false)
	if err != nil {
		return nil, err
	}
	var corrected []string
	var failed []error
	for _, info := range declared {
		if ctx.Err() != nil {
			break
		}
		drifted, err := correct(info, r)
		name := info.Mapping.GroupVersionKind.Kind + "/" + info.Name
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		} else if drifted {
			corrected = append(corrected, name)
		}
	}
	return corrected, errors.Join(append(failed, ctx.Err())...)
}

// correct says whether the object differed.
func correct(info *resource.Info, r *release.Release) (bool, error) {
	declared, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return false, fmt.Errorf("%T is no unstructured object", info.Object)
	}
	mark(declared, r)
	helper := resource.NewHelper(info.Client, info.Mapping).WithFieldManager(helmController)
	live, err := helper.Get(info.Namespace, info.Name)
	if apierrors.IsNotFound(err) {
		_, err := helper.Create(info.Namespace, false, declared)
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	wanted, err := dryRun(info, declared)
	if err != nil {
		return false, err
	}
	patch, err := difference(live.(*unstructured.Unstructured), wanted)
	if err != nil || patch == nil {
		return false, err
	}
	_, err = helper.Patch(info.Namespace, info.Name, types.MergePatchType, patch, nil)
	return err == nil, err
}

// dryRun asks the API server what the object would be after the release's apply.
func dryRun(info *resource.Info, declared *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	body, err := declared.MarshalJSON()
	if err != nil {
		return nil, err
	}
	force := true
	helper := resource.NewHelper(info.Client, info.Mapping).WithFieldManager(kube.ManagedFieldsManager).DryRun(true)
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
