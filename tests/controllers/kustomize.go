package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/object"
	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kustomizeController is the field manager of the objects, and the prefix of the labels and annotations on them.
const (
	kustomizeController = "kustomize-controller"
	kustomizeGroup      = "kustomize.toolkit.fluxcd.io"
)

// kustomize is one reconcile of a Kustomization.
type kustomize struct {
	namespace string
	name      string
	revision  string
	// For the status.
	own client.Client
	// For the objects, perhaps as a tenant.
	manager *ssa.ResourceManager
	report  *report
}

// inventory is what the status lists.
type inventory struct {
	Entries []entry `json:"entries"`
}

type entry struct {
	ID      string `json:"id"`
	Version string `json:"v"`
}

func runKustomize(ctx context.Context, args []string, report *report) (bool, error) {
	var d description
	k := kustomize{report: report}
	flags := newFlags("kustomize", &d)
	as := flags.String("as", "", "the user to impersonate for objects")
	objects := flags.String("objects", "[]", "what the source renders to, a JSON list")
	flags.StringVar(&k.namespace, "namespace", "", "of the Kustomization")
	flags.StringVar(&k.name, "name", "", "of the Kustomization")
	flags.StringVar(&k.revision, "revision", "", "of the source")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if err := required(flags, "namespace", "name", "revision"); err != nil {
		return false, err
	}
	var rendered []*unstructured.Unstructured
	if err := json.Unmarshal([]byte(*objects), &rendered); err != nil {
		return false, fmt.Errorf("--objects: %w", err)
	}
	var err error
	if k.own, err = connectClient(d.kubeconfig, ""); err != nil {
		return false, err
	}
	tenant, err := connectClient(d.kubeconfig, *as)
	if err != nil {
		return false, err
	}
	k.manager = ssa.NewResourceManager(tenant, nil, ssa.Owner{Field: kustomizeController, Group: kustomizeGroup})
	return k.reconcile(ctx, rendered)
}

// connectClient reaches the API server as the kubeconfig's user, or as somebody else by name alone.
func connectClient(kubeconfig, as string) (client.Client, error) {
	if kubeconfig == "" {
		kubeconfig = os.Getenv("KUBECONFIG")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Impersonate.UserName = as
	config.UserAgent = "gotk-" + kustomizeController + "/v1"
	config.QPS = -1
	return client.New(config, client.Options{Scheme: runtime.NewScheme()})
}

// reconcile applies what the source renders to, prunes what it does not have any longer, and writes the inventory at the end.
func (k *kustomize) reconcile(ctx context.Context, objects []*unstructured.Unstructured) (bool, error) {
	before, err := k.inventory(ctx)
	if err != nil {
		return false, err
	}
	for _, object := range objects {
		if object.GetNamespace() == "" && object.GetKind() != "Namespace" {
			object.SetNamespace(k.namespace)
		}
	}
	k.manager.SetOwnerLabels(objects, k.name, k.namespace)
	applied, err := k.manager.ApplyAllStaged(ctx, objects, applyOptions())
	k.report.add(act{Action: "apply", Objects: changed(applied)}, err)
	if err != nil {
		return false, nil
	}
	after := inventory{Entries: []entry{}}
	for _, it := range applied.Entries {
		after.Entries = append(after.Entries, entry{ID: it.ObjMetadata.String(), Version: it.GroupVersion})
	}
	stale, err := k.stale(before, after)
	if err != nil {
		return false, err
	}
	if len(stale) > 0 {
		deleted, err := k.manager.DeleteAll(ctx, stale, k.deleteOptions())
		k.report.add(act{Action: "prune", Objects: changed(deleted)}, err)
		if err != nil {
			// What is left stays in the inventory, and the revision is not the applied one.
			return false, nil
		}
	}
	return true, k.patchStatus(ctx, after)
}

// applyOptions are those of the controller.
func applyOptions() ssa.ApplyOptions {
	options := ssa.DefaultApplyOptions()
	options.ForceSelector = map[string]string{kustomizeGroup + "/force": "Enabled"}
	options.ExclusionSelector = map[string]string{
		kustomizeGroup + "/reconcile": "Disabled",
		kustomizeGroup + "/ssa":       "Ignore",
	}
	options.IfNotPresentSelector = map[string]string{kustomizeGroup + "/ssa": "IfNotPresent"}
	options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations:   []string{"kubectl.kubernetes.io/last-applied-configuration"},
		FieldManagers: []ssa.FieldManager{{Name: "kubectl", OperationType: "Apply"}, {Name: "kubectl", OperationType: "Update"}},
		Exclusions:    map[string]string{kustomizeGroup + "/ssa": "Merge"},
	}
	return options
}

func (k *kustomize) deleteOptions() ssa.DeleteOptions {
	options := ssa.DefaultDeleteOptions()
	options.Inclusions = k.manager.GetOwnerLabels(k.name, k.namespace)
	options.Exclusions = map[string]string{kustomizeGroup + "/prune": "Disabled", kustomizeGroup + "/reconcile": "Disabled"}
	return options
}

func (k *kustomize) stored(ctx context.Context) (*unstructured.Unstructured, error) {
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(schema.GroupVersionKind{Group: kustomizeGroup, Version: "v1", Kind: "Kustomization"})
	return stored, k.own.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: k.name}, stored)
}

func (k *kustomize) inventory(ctx context.Context) (inventory, error) {
	var listed inventory
	stored, err := k.stored(ctx)
	if err != nil {
		return listed, err
	}
	status, _, err := unstructured.NestedMap(stored.Object, "status", "inventory")
	if err != nil {
		return listed, err
	}
	return listed, runtime.DefaultUnstructuredConverter.FromUnstructured(status, &listed)
}

// stale are the objects that only the old inventory has.
func (k *kustomize) stale(before, after inventory) ([]*unstructured.Unstructured, error) {
	kept := map[string]bool{}
	for _, it := range after.Entries {
		kept[it.ID] = true
	}
	var stale []*unstructured.Unstructured
	for _, it := range before.Entries {
		if kept[it.ID] {
			continue
		}
		parsed, err := object.ParseObjMetadata(it.ID)
		if err != nil {
			return nil, err
		}
		gone := &unstructured.Unstructured{}
		gone.SetGroupVersionKind(parsed.GroupKind.WithVersion(it.Version))
		gone.SetNamespace(parsed.Namespace)
		gone.SetName(parsed.Name)
		stale = append(stale, gone)
	}
	return stale, nil
}

func (k *kustomize) patchStatus(ctx context.Context, after inventory) error {
	stored, err := k.stored(ctx)
	if err != nil {
		return err
	}
	status := map[string]any{"inventory": after, "lastAppliedRevision": k.revision, "lastAttemptedRevision": k.revision}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	return k.own.Status().Patch(ctx, stored, client.RawPatch("application/merge-patch+json", patch),
		client.FieldOwner("gotk-"+kustomizeController))
}

// changed names the objects that were written.
func changed(set *ssa.ChangeSet) []string {
	var names []string
	if set == nil {
		return names
	}
	for _, it := range set.Entries {
		if it.Action != ssa.UnchangedAction {
			names = append(names, it.ObjMetadata.GroupKind.Kind+"/"+it.ObjMetadata.Name)
		}
	}
	return names
}
