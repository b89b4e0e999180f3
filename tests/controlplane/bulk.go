package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// etcd admits 128 operations in a transaction, and 1.5 MiB.
	putsAtATime = 60
	// Transactions on their way at once.
	writers = 4
	// Releases in a namespace.
	inANamespace = 100
)

// bulk writes the records of many releases straight into etcd, where an API server finds them: 30,000 Secrets take
// seconds, and through an API server minutes.
type bulk struct {
	etcd    *clientv3.Client
	encoder runtime.Serializer
	now     time.Time
	// Of each body, so that it packs to some 5 KiB as that of a small chart does.
	template string
}

// record is one revision of a release, whole or with a fault.
type record struct {
	namespace, release string
	revision           int
	// In the label, and in the body where it says nothing else.
	status, bodyStatus string
	age                time.Duration
	garbled            bool
}

// faults are the histories of the releases that have one, newest record first, in turn.
var faults = [][]record{
	{{status: "deployed"}, {status: "deployed"}, {status: "superseded"}},
	{{status: "pending-upgrade", age: time.Hour}, {status: "deployed"}, {status: "superseded"}},
	{{status: "failed"}, {status: "deployed"}, {status: "superseded"}},
	{{status: "deployed"}, {status: "pending-upgrade", age: time.Hour}, {status: "superseded"}},
	{{status: "deployed", garbled: true}, {status: "superseded"}, {status: "superseded"}},
	// Text that must not become markup.
	{{status: "deployed", bodyStatus: "<img src=x onerror=alert(1)>"}, {status: "superseded"}, {status: "superseded"}},
}

// runBulk writes N releases and prints how many objects that were.
func runBulk(args []string) int {
	flags := flag.NewFlagSet("bulk", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	endpoint := flags.String("etcd", "", "the URL that `up` prints as etcd")
	releases := flags.Int("releases", 10_000, "so many releases")
	records := flags.Int("records", 3, "so many records each, at least 3")
	faultyEvery := flags.Int("faulty-every", 0, "one release in so many has a fault; 0 for none")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *endpoint == "" || *records < 3 || flags.NArg() > 0 {
		fail(os.Stderr)
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{*endpoint}, DialTimeout: 10 * time.Second})
	if err != nil {
		fmt.Fprintln(os.Stderr, "controlplane bulk:", err)
		return 1
	}
	defer etcd.Close()
	b := &bulk{
		etcd:     etcd,
		encoder:  protobuf.NewSerializer(scheme.Scheme, scheme.Scheme),
		now:      time.Now(),
		template: template(),
	}
	objects, err := b.write(context.Background(), *releases, *records, *faultyEvery)
	if err != nil {
		fmt.Fprintln(os.Stderr, "controlplane bulk:", err)
		return 1
	}
	fmt.Printf("{\"releases\":%d,\"objects\":%d}\n", *releases, objects)
	return 0
}

// template is text that does not pack away to nothing.
func template() string {
	var text strings.Builder
	for line := 0; line < 150; line++ {
		fmt.Fprintf(&text, "key-%d: %s\n", line, uuid.NewUUID())
	}
	return text.String()
}

func (b *bulk) write(ctx context.Context, releases, records, faultyEvery int) (int, error) {
	batches := make(chan []clientv3.Op)
	failures := make(chan error, writers)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for batch := range batches {
				if _, err := b.etcd.Txn(ctx).Then(batch...).Commit(); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	err := b.produce(batches, failures, releases, records, faultyEvery)
	close(batches)
	group.Wait()
	if err == nil {
		select {
		case err = <-failures:
		default:
		}
	}
	namespaces := (releases + inANamespace - 1) / inANamespace
	return namespaces + releases*records, err
}

func (b *bulk) produce(batches chan<- []clientv3.Op, failures <-chan error, releases, records, faultyEvery int) error {
	var batch []clientv3.Op
	put := func(key string, object runtime.Object) error {
		var encoded bytes.Buffer
		if err := b.encoder.Encode(object, &encoded); err != nil {
			return err
		}
		batch = append(batch, clientv3.OpPut(key, encoded.String()))
		if len(batch) < putsAtATime {
			return nil
		}
		select {
		case batches <- batch:
			batch = nil
			return nil
		case err := <-failures:
			return err
		}
	}
	for number := range releases {
		namespace := fmt.Sprintf("bulk-%d", number/inANamespace)
		if number%inANamespace == 0 {
			if err := put("/registry/namespaces/"+namespace, b.namespace(namespace)); err != nil {
				return err
			}
		}
		history := healthy(records)
		if faultyEvery > 0 && number%faultyEvery == 0 {
			history = faults[number/faultyEvery%len(faults)]
			history = append(history[:len(history):len(history)], healthy(records)[len(history):]...)
		}
		for place, one := range history {
			one.namespace, one.release = namespace, fmt.Sprintf("release-%d", number)
			one.revision = records - place
			secret, err := b.secret(one)
			if err != nil {
				return err
			}
			if err := put(fmt.Sprintf("/registry/secrets/%s/%s", namespace, secret.Name), secret); err != nil {
				return err
			}
		}
	}
	if len(batch) > 0 {
		batches <- batch
	}
	return nil
}

// healthy is the history of a release at rest, newest record first.
func healthy(records int) []record {
	history := []record{{status: "deployed"}}
	for len(history) < records {
		history = append(history, record{status: "superseded"})
	}
	return history
}

func (b *bulk) metadata(name string, age time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              name,
		UID:               types.UID(uuid.NewUUID()),
		CreationTimestamp: metav1.NewTime(b.now.Add(-age)),
	}
}

func (b *bulk) namespace(name string) *corev1.Namespace {
	namespace := &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: b.metadata(name, 0),
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
	namespace.Labels = map[string]string{corev1.LabelMetadataName: name}
	return namespace
}

func (b *bulk) secret(one record) (*corev1.Secret, error) {
	payload, err := b.payload(one)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: b.metadata(fmt.Sprintf("sh.helm.release.v1.%s.v%d", one.release, one.revision), one.age),
		Type:       "helm.sh/release.v1",
		Data:       map[string][]byte{"release": payload},
	}
	secret.Namespace = one.namespace
	secret.Labels = map[string]string{
		"owner": "helm", "name": one.release, "version": strconv.Itoa(one.revision), "status": one.status,
		"modifiedAt": strconv.FormatInt(b.now.Unix(), 10),
	}
	// As helm's own writes leave it: a part of what every list carries.
	secret.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
		Time: &secret.CreationTimestamp,
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:data":{".":{},"f:release":{}},"f:metadata":{"f:labels":{".":{},` +
			`"f:modifiedAt":{},"f:name":{},"f:owner":{},"f:status":{},"f:version":{}}},"f:type":{}}`)},
	}}
	return secret, nil
}

// payload is a body as Helm stores it: JSON, gzip, base64.
func (b *bulk) payload(one record) ([]byte, error) {
	if one.garbled {
		return []byte("bm90IGEgcmVjb3Jk!"), nil
	}
	status := one.status
	if one.bodyStatus != "" {
		status = one.bodyStatus
	}
	type object map[string]any
	manifest := fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  note: one\n", one.release)
	body, err := json.Marshal(object{
		"name": one.release, "namespace": one.namespace, "version": one.revision, "manifest": manifest,
		"info": object{"status": status, "last_deployed": b.now.Format(time.RFC3339), "description": "Upgrade complete"},
		"chart": object{
			"metadata":  object{"name": "shop", "version": fmt.Sprintf("1.0.%d", one.revision), "apiVersion": "v2"},
			"templates": []object{{"name": "templates/all.yaml", "data": []byte(b.template)}},
		},
	})
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	member := gzip.NewWriter(&packed)
	if _, err := member.Write(body); err != nil {
		return nil, err
	}
	if err := member.Close(); err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes())), nil
}
