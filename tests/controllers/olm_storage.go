package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/typed/core/v1"
)

// How OLM names the parts of a record.
const (
	indexType = "operatorframework.io/index.v1"
	chunkType = "operatorframework.io/chunk.v1"
	// The key of a Secret's part of the record, and that of the list of the other parts in the first.
	chunkKey       = "chunk"
	extraChunksKey = "extraChunks"
)

// chunked keeps records as OLM does: the first part in an index Secret, every other one in a chunk Secret that the index
// owns. It is a storage driver of Helm.
type chunked struct {
	secrets v1.SecretInterface
	owner   owner
	// The most bytes in one part.
	size int
}

var _ driver.Driver = (*chunked)(nil)

func (c *chunked) Name() string { return "chunkedSecrets" }

// Create writes the index and then the chunks.
func (c *chunked) Create(key string, r *release.Release) error {
	parts, err := split(r, c.size)
	if err != nil {
		return err
	}
	created := map[string]string{"createdAt": now()}
	index := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name:            key,
		Labels:          merged(indexLabels(key, r), created),
		OwnerReferences: c.owner.references(),
	}}
	if err := fillIndex(index, parts); err != nil {
		return err
	}
	index, err = c.secrets.Create(context.Background(), index, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return driver.ErrReleaseExists
	}
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return c.createChunks(index, parts[1:], created)
}

// Update begins with the deletion of the old chunks, and the record is whole again after the last new one: in between
// nobody can read it.
func (c *chunked) Update(key string, r *release.Release) error {
	parts, err := split(r, c.size)
	if err != nil {
		return err
	}
	index, err := c.secrets.Get(context.Background(), key, metav1.GetOptions{})
	if err != nil {
		return notFound(err)
	}
	if err := c.deleteParts(labels.Set{"key": key, "type": "chunk"}); err != nil {
		return err
	}
	index.Labels = merged(index.Labels, indexLabels(key, r), map[string]string{"modifiedAt": now()})
	if err := fillIndex(index, parts); err != nil {
		return err
	}
	index, err = c.secrets.Update(context.Background(), index, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	return c.createChunks(index, parts[1:], nil)
}

// Delete needs a record that can be read, as Helm returns it, and takes its parts away in one go.
func (c *chunked) Delete(key string) (*release.Release, error) {
	r, err := c.Get(key)
	if err != nil {
		return nil, err
	}
	return r, c.deleteParts(labels.Set{"key": key})
}

func (c *chunked) Get(key string) (*release.Release, error) {
	index, err := c.secrets.Get(context.Background(), key, metav1.GetOptions{})
	if err != nil {
		return nil, notFound(err)
	}
	return c.read(index)
}

func (c *chunked) List(filter func(*release.Release) bool) ([]*release.Release, error) {
	all, err := c.find(nil)
	if err != nil {
		return nil, err
	}
	var kept []*release.Release
	for _, r := range all {
		if filter(r) {
			kept = append(kept, r)
		}
	}
	return kept, nil
}

// Query is asked for records of the owner `helm`, whoever the driver is.
func (c *chunked) Query(asked map[string]string) ([]*release.Release, error) {
	found, err := c.find(asked)
	if err == nil && len(found) == 0 {
		return nil, driver.ErrReleaseNotFound
	}
	return found, err
}

// find reads all records with these labels; one that cannot be read fails the whole.
func (c *chunked) find(asked map[string]string) ([]*release.Release, error) {
	selector := labels.Set(merged(asked, ours("index")))
	list, err := c.secrets.List(context.Background(), metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	var found []*release.Release
	for i := range list.Items {
		r, err := c.read(&list.Items[i])
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, nil
}

// read puts a record together.
func (c *chunked) read(index *corev1.Secret) (*release.Release, error) {
	var names []string
	if err := json.Unmarshal(index.Data[extraChunksKey], &names); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", index.Name, extraChunksKey, err)
	}
	packed := index.Data[chunkKey]
	for _, name := range names {
		chunk, err := c.secrets.Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", index.Name, err)
		}
		packed = append(packed, chunk.Data[chunkKey]...)
	}
	r, err := unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", index.Name, err)
	}
	return r, nil
}

func (c *chunked) createChunks(index *corev1.Secret, parts []part, extra map[string]string) error {
	yes, no := true, false
	for _, part := range parts {
		chunk := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name:   part.secret(index.Name),
				Labels: merged(ours("chunk"), map[string]string{"key": index.Name}, extra),
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion:         "v1",
					Kind:               "Secret",
					Name:               index.Name,
					UID:                index.UID,
					Controller:         &yes,
					BlockOwnerDeletion: &no,
				}},
			},
			Type:      chunkType,
			Immutable: &yes,
			Data:      map[string][]byte{chunkKey: part},
		}
		if _, err := c.secrets.Create(context.Background(), chunk, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create: %w", err)
		}
	}
	return nil
}

// deleteParts deletes the Secrets of ours with these labels, as a collection.
func (c *chunked) deleteParts(of labels.Set) error {
	selector := labels.Set(merged(of, map[string]string{"owner": operatorController}))
	return c.secrets.DeleteCollection(context.Background(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: selector.String()})
}

// fillIndex puts the record into its index: the first part and the names of the others.
func fillIndex(index *corev1.Secret, parts []part) error {
	no, names := false, []string{}
	for _, part := range parts[1:] {
		names = append(names, part.secret(index.Name))
	}
	list, err := json.Marshal(names)
	if err != nil {
		return err
	}
	index.Type, index.Immutable = indexType, &no
	index.Data = map[string][]byte{chunkKey: parts[0], extraChunksKey: list}
	return nil
}

func indexLabels(key string, r *release.Release) map[string]string {
	return merged(ours("index"), map[string]string{
		"key":     key,
		"name":    r.Name,
		"status":  r.Info.Status.String(),
		"version": strconv.Itoa(r.Version),
	})
}

// ours are the labels of every Secret of a kind.
func ours(kind string) map[string]string {
	return map[string]string{"owner": operatorController, "type": kind}
}

// merged is a new map; the later ones win.
func merged(all ...map[string]string) map[string]string {
	sum := map[string]string{}
	for _, one := range all {
		maps.Copy(sum, one)
	}
	return sum
}

func notFound(err error) error {
	if apierrors.IsNotFound(err) {
		return errors.Join(driver.ErrReleaseNotFound, err)
	}
	return err
}

func now() string { return strconv.FormatInt(time.Now().Unix(), 10) }
